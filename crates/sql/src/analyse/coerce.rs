//! Conversions between types, and common types.

use super::{Analyser, ParamTypes};
use crate::parse::ast::Loc;
use base::{Error, Oid, Result, SqlError, SqlState, err};
use engine::catalog::model::Table;
use expr::tree::CallForm;
use expr::{Constant, Expr, TypeRef};
use types::facts::{CastContext, CastMethod};
use types::oids::*;
use types::registry::{cast, operators_by_name};
use types::{Datum, type_info};

/// The category letter of a type.
pub(crate) fn category(ty: Oid) -> char {
    match type_info(ty) {
        Some(t) if ty != UNKNOWN => t.category,
        Some(_) => 'X',
        None => 'C',
    }
}
pub(crate) fn is_preferred(ty: Oid) -> bool {
    type_info(ty).is_some_and(|t| t.preferred)
}
pub(crate) fn is_composite(ty: Oid) -> bool {
    type_info(ty).is_none_or(|t| t.kind == 'c')
}
/// The element type of a true array type, or None.
pub(crate) fn element_type(ty: Oid) -> Option<Oid> {
    types::element_type(ty)
}
/// The array type over `ty`, or None.
pub(crate) fn array_type(ty: Oid) -> Option<Oid> {
    types::array_type(ty)
}

/// Polymorphic pseudo-types.
pub(crate) fn is_polymorphic(ty: Oid) -> bool {
    matches!(
        ty,
        ANYELEMENT
            | ANYARRAY
            | ANYNONARRAY
            | ANYENUM
            | ANYRANGE
            | ANYCOMPATIBLE
            | ANYCOMPATIBLEARRAY
            | ANYCOMPATIBLENONARRAY
            | ANYCOMPATIBLERANGE
    )
}

/// How one type becomes another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Path {
    None,
    Same,
    Relabel,
    Function(Oid),
    Io,
    Array,
}

/// The way from `from` to `to` in this context.
pub(crate) fn path(from: Oid, to: Oid, context: CastContext) -> Path {
    if from == to {
        return Path::Same;
    }
    if let Some(c) = cast(from, to) {
        if context < c.context {
            return Path::None;
        }
        return match c.method {
            CastMethod::Function(f) => Path::Function(f),
            CastMethod::Binary => Path::Relabel,
            CastMethod::InOut => Path::Io,
        };
    }
    if to != OIDVECTOR
        && to != INT2VECTOR
        && let (Some(a), Some(b)) = (element_type(from), element_type(to))
    {
        // What a row as a value can become, one in an array can not.
        if is_composite(b) {
            return Path::None;
        }
        return match path(a, b, context) {
            Path::None => Path::None,
            Path::Relabel => Path::Relabel,
            Path::Same => Path::Relabel,
            _ => Path::Array,
        };
    }
    if is_composite(from) && to == RECORD || from == RECORD && is_composite(to) {
        return Path::Relabel;
    }
    if is_composite(from) && is_composite(to) {
        return if context == CastContext::Explicit { Path::Relabel } else { Path::None };
    }
    if context >= CastContext::Assignment && category(to) == 'S' {
        return Path::Io;
    }
    if context >= CastContext::Explicit && category(from) == 'S' {
        return Path::Io;
    }
    Path::None
}

/// Can a value of type `from` become `to`?
pub(crate) fn can_coerce(from: Oid, to: Oid, context: CastContext) -> bool {
    let (from, to) = (types::domains::base_type(from), types::domains::base_type(to));
    if from == to || to == ANY || from == UNKNOWN {
        return true;
    }
    match to {
        ANYELEMENT | ANYCOMPATIBLE => true,
        ANYARRAY | ANYCOMPATIBLEARRAY => element_type(from).is_some() || from == ANYARRAY,
        ANYNONARRAY | ANYCOMPATIBLENONARRAY => element_type(from).is_none(),
        ANYENUM => types::enums::is_enum(from),
        ANYRANGE | ANYCOMPATIBLERANGE => false,
        RECORD if is_composite(from) => true,
        RECORD_ARRAY if element_type(from).is_some_and(is_composite) => true,
        _ => path(from, to, context) != Path::None,
    }
}

/// The function that fits a value of `ty` to a type modifier, if the type has one.
fn length_function(ty: Oid) -> Option<Oid> {
    match cast(ty, ty)?.method {
        CastMethod::Function(f) => Some(f),
        _ => None,
    }
}

/// The modifier that values of an expression are known to have.
pub(crate) fn typmod(e: &Expr) -> i32 {
    e.ty().typmod
}

/// The type `ty` that several became, with the modifier that all of them have.
pub(crate) fn agreed<'a>(ty: Oid, mut list: impl Iterator<Item = &'a Expr>) -> TypeRef {
    let Some(first) = list.next().map(Expr::ty) else { return TypeRef::of(ty) };
    if first.oid == ty && list.all(|e| e.ty() == first) { first } else { TypeRef::of(ty) }
}

pub(crate) fn constant(ty: Oid, value: Datum) -> Expr {
    Expr::Const(Constant { ty: TypeRef::of(ty), value })
}
pub(crate) fn bool_const(b: bool) -> Expr {
    constant(BOOL, Datum::Bool(b))
}

/// A call of a cast's function, with the modifier and the explicit flag if it takes them.
fn cast_call(function: Oid, arg: Expr, to: TypeRef, explicit: bool) -> Expr {
    let from = arg.ty();
    let declared = types::facts::proc(function).map_or(&[][..], |p| p.args);
    let mut args = vec![arg];
    let mut arg_types = vec![from];
    if declared.len() >= 2 {
        args.push(constant(INT4, Datum::Int4(to.typmod)));
        arg_types.push(TypeRef::of(INT4));
    }
    if declared.len() >= 3 {
        args.push(constant(BOOL, Datum::Bool(explicit)));
        arg_types.push(TypeRef::of(BOOL));
    }
    let ty = if declared.len() >= 2 { to } else { TypeRef::of(to.oid) };
    let form = if explicit { CallForm::ExplicitCast } else { CallForm::ImplicitCast };
    // smallint becomes oid by int4(int2): what comes back has still to be taken for the type.
    let result = types::facts::proc(function).map_or(to.oid, |p| p.result);
    if result == INT4 && to.oid != INT4 {
        let ty = TypeRef::of(INT4);
        let call = Expr::Call { function: function.0, args, arg_types, ty, operator: 0, form };
        return Expr::Relabel { arg: Box::new(call), ty: to, explicit };
    }
    Expr::Call { function: function.0, args, arg_types, ty, operator: 0, form }
}

impl Analyser<'_> {
    /// A type without a modifier, as messages call it.
    pub fn type_name_of(&self, ty: Oid) -> String {
        let of_user = ty >= Oid::FIRST_NORMAL || type_info(ty).is_none();
        let named = if of_user { self.env.object_name(REGTYPE, ty) } else { None };
        named.unwrap_or_else(|| match type_info(ty) {
            None => "record".into(),
            // Without a modifier it is what any bit(n) is.
            Some(_) if ty == BIT => "bit".into(),
            Some(_) => types::format_type(ty, -1),
        })
    }

    /// The cannot-be-cast error of PostgreSQL.
    pub fn cannot_cast<T>(&self, from: Oid, to: Oid, loc: Loc) -> Result<T> {
        let e = err!(
            CANNOT_COERCE,
            "cannot cast type {} to {}",
            self.type_name_of(from),
            self.type_name_of(to)
        );
        self.at(loc, e)
    }

    /// `e` as type `to`. The caller knows that there is a way, or wants the error.
    pub fn coerce(
        &mut self,
        e: Expr,
        to: TypeRef,
        context: CastContext,
        explicit: bool,
        loc: Loc,
    ) -> Result<Expr> {
        if to.base() != to {
            return self.to_domain(e, to, context, explicit, loc);
        }
        let e = self.coerce_type(e, to, context, explicit, loc)?;
        Ok(self.fit(e, to, explicit))
    }

    /// Implicit conversion to a type without modifier.
    pub fn coerce_implicit(&mut self, e: Expr, to: Oid, loc: Loc) -> Result<Expr> {
        self.coerce_type(e, TypeRef::of(to), CastContext::Implicit, false, loc)
    }

    fn coerce_type(
        &mut self,
        e: Expr,
        to: TypeRef,
        context: CastContext,
        explicit: bool,
        loc: Loc,
    ) -> Result<Expr> {
        let e = e.plain();
        let from = e.ty().oid;
        if from == to.oid || to.oid == ANY || is_polymorphic(to.oid) {
            return Ok(e);
        }
        match e {
            Expr::Const(c) if from == UNKNOWN => return self.literal(c, to, loc),
            Expr::Param { number, ty } if from == UNKNOWN => {
                return self.infer_param(number, ty, to.oid, loc);
            }
            Expr::Collate { arg, collation } if from == UNKNOWN => {
                let arg = self.coerce_type(*arg, to, context, explicit, loc)?;
                return Ok(Expr::Collate { arg: Box::new(arg), collation });
            }
            // (a, b)::rowtype, NULL elements and the like keep their parts
            _ => {}
        }
        if from == UNKNOWN {
            return Ok(Expr::CoerceViaIo { arg: Box::new(e), ty: TypeRef::of(to.oid), explicit });
        }
        if is_composite(to.oid)
            && matches!(e, Expr::Row { .. })
            && let Some(table) = self.catalog.table_of_row_type(to.oid)?
        {
            return self.row_of(&table, e, to, context, explicit, loc);
        }
        match path(from, to.oid, context) {
            Path::Same => Ok(e),
            Path::Relabel => {
                Ok(Expr::Relabel { arg: Box::new(e), ty: TypeRef::of(to.oid), explicit })
            }
            Path::Function(f) => Ok(cast_call(f, e, to, explicit)),
            Path::Io => {
                Ok(Expr::CoerceViaIo { arg: Box::new(e), ty: TypeRef::of(to.oid), explicit })
            }
            Path::Array => {
                let (Some(a), Some(b)) = (element_type(from), element_type(to.oid)) else {
                    return self.cannot_cast(from, to.oid, loc);
                };
                let item = Expr::CaseTestValue(TypeRef::of(a));
                let element = self.coerce_type(
                    item,
                    TypeRef { oid: b, typmod: to.typmod },
                    context,
                    explicit,
                    loc,
                )?;
                Ok(Expr::ArrayCoerce {
                    arg: Box::new(e),
                    element: Box::new(element),
                    ty: TypeRef::of(to.oid),
                })
            }
            Path::None => self.cannot_cast(from, to.oid, loc),
        }
    }

    /// `ROW(…)` as a row of a table, its fields as the table's columns.
    fn row_of(
        &mut self,
        table: &Table,
        row: Expr,
        to: TypeRef,
        context: CastContext,
        explicit: bool,
        loc: Loc,
    ) -> Result<Expr> {
        let Expr::Row { fields, ty, .. } = row else { return Ok(row) };
        let columns: Vec<_> = table.columns.iter().filter(|c| !c.dropped).collect();
        let called = self.type_name_of(to.oid);
        let cannot = |detail: String| {
            let text = format!("cannot cast type record to {called}");
            base::Error::from(SqlError::new(SqlState::CANNOT_COERCE, text).detail(detail))
        };
        if fields.len() != columns.len() {
            let few = fields.len() < columns.len();
            let e = cannot(format!("Input has too {} columns.", if few { "few" } else { "many" }));
            return self.at(loc, e);
        }
        let mut out = Vec::with_capacity(fields.len());
        for (i, (mut field, c)) in fields.into_iter().zip(&columns).enumerate() {
            // A literal is text by now.
            if let Expr::Const(constant) = &mut field
                && constant.ty.oid == TEXT
            {
                constant.ty = TypeRef::of(UNKNOWN);
            }
            let (from, wanted) = (field.ty().oid, c.declared());
            if !can_coerce(from, wanted.oid, context) {
                let (from, wanted) = (self.type_name_of(from), self.type_name_of(wanted.oid));
                let n = i + 1;
                let e = cannot(format!("Cannot cast type {from} to {wanted} in column {n}."));
                return self.at(loc, e);
            }
            out.push(self.coerce(field, wanted, context, explicit, loc)?.plain());
        }
        let names = columns.iter().map(|c| c.name.clone()).collect();
        let row = Expr::Row { fields: out, names, ty };
        Ok(Expr::Relabel { arg: Box::new(row), ty: TypeRef::of(to.oid), explicit })
    }

    /// The text form of a row of a table as a row of values, so that it is one of its text wherever it is kept.
    fn row_literal(&mut self, table: &Table, text: &str, to: TypeRef, loc: Loc) -> Result<Expr> {
        let columns: Vec<_> = table.columns.iter().filter(|c| !c.dropped).collect();
        let parts = match types::io::record_parts(text, columns.len()) {
            Ok(parts) => parts,
            Err(e) => return self.at(loc, e),
        };
        let mut fields = Vec::with_capacity(columns.len());
        for (part, c) in parts.into_iter().zip(&columns) {
            let value = part.map_or(Datum::Null, Datum::text);
            let wanted = c.declared();
            // Unlike a cast, reading it does not cut what is too long.
            let unknown = constant(UNKNOWN, value);
            let field = self.coerce(unknown, wanted, CastContext::Assignment, false, loc)?;
            fields.push(field.plain());
        }
        let names = columns.iter().map(|c| c.name.clone()).collect();
        let row = Expr::Row { fields, names, ty: TypeRef::of(RECORD) };
        Ok(Expr::Relabel { arg: Box::new(row), ty: TypeRef::of(to.oid), explicit: true })
    }

    fn literal(&mut self, c: Constant, to: TypeRef, loc: Loc) -> Result<Expr> {
        if is_composite(to.oid)
            && let Datum::Text(text) = &c.value
            && let Some(table) = self.catalog.table_of_row_type(to.oid)?
        {
            return self.row_literal(&table, text.as_str(), to, loc);
        }
        // Only an interval's input depends on its modifier.
        let input_typmod = if to.oid == INTERVAL { to.typmod } else { -1 };
        let value = match &c.value {
            Datum::Null => Datum::Null,
            Datum::Text(t) => match types::text_input(to.oid, input_typmod, t.as_str(), self.env) {
                Ok(v) => v,
                Err(e) => return self.at(loc, e),
            },
            other => other.clone(),
        };
        let ty = TypeRef { oid: to.oid, typmod: input_typmod };
        Ok(Expr::Const(Constant { ty, value }))
    }

    /// A parameter whose type was found since it was met.
    pub(super) fn inferred(&self, e: Expr) -> Expr {
        match e {
            Expr::Param { number, ty } if ty.oid == UNKNOWN => {
                let known = self.params.types.get(number as usize - 1).filter(|t| t.is_valid());
                let ty = known.map_or(ty, |t| TypeRef::of(types::domains::base_type(*t)));
                Expr::Param { number, ty }
            }
            other => other,
        }
    }

    pub(super) fn infer_param(
        &mut self,
        number: u32,
        ty: TypeRef,
        to: Oid,
        loc: Loc,
    ) -> Result<Expr> {
        let ParamTypes { types, variable, .. } = &mut *self.params;
        let Some(slot) = types.get_mut(number as usize - 1) else {
            return Ok(Expr::Param { number, ty });
        };
        if !slot.is_valid() || *slot == UNKNOWN {
            if *variable {
                *slot = to;
            }
        } else if *slot != to {
            let before = *slot;
            let e = SqlError::new(
                SqlState::AMBIGUOUS_PARAMETER,
                format!("inconsistent types deduced for parameter ${number}"),
            )
            .detail(format!(
                "{} versus {}",
                self.type_name_of(before),
                self.type_name_of(to)
            ));
            return self.at(loc, e.into());
        }
        Ok(Expr::Param { number, ty: TypeRef::of(to) })
    }

    /// Applies `to`'s modifier, if it has one that the value may not fit.
    pub(super) fn fit(&self, e: Expr, to: TypeRef, explicit: bool) -> Expr {
        if to.typmod < 0 || typmod(&e) == to.typmod {
            return e;
        }
        if let Expr::Const(Constant { ty, value: Datum::Null }) = &e {
            return Expr::Const(Constant {
                ty: TypeRef { oid: ty.oid, typmod: to.typmod },
                value: Datum::Null,
            });
        }
        if let Some(f) = length_function(to.oid) {
            return cast_call(f, e, to, explicit);
        }
        if let Some(element) = element_type(to.oid)
            && let Some(f) = length_function(element)
        {
            let of = TypeRef { oid: element, typmod: to.typmod };
            let item = cast_call(f, Expr::CaseTestValue(TypeRef::of(element)), of, explicit);
            return Expr::ArrayCoerce { arg: Box::new(e), element: Box::new(item), ty: to };
        }
        e
    }

    /// `e` for a column of type `to` (assignment).
    pub fn assign(&mut self, e: Expr, to: TypeRef, column: &str, loc: Loc) -> Result<Expr> {
        let from = e.ty().oid;
        if !can_coerce(from, to.oid, CastContext::Assignment) {
            let e = SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "column \"{column}\" is of type {} but expression is of type {}",
                    self.type_name_of(to.oid),
                    self.type_name_of(from)
                ),
            )
            .hint("You will need to rewrite or cast the expression.")
            .column(column);
            return self.at(loc, e.into());
        }
        self.coerce(e, to, CastContext::Assignment, false, loc).map(Expr::plain)
    }

    /// A Boolean condition of the construct `what`.
    pub fn boolean(&mut self, e: Expr, what: &str, loc: Loc) -> Result<Expr> {
        self.expect_type(e, BOOL, what, "type boolean", loc)
    }

    pub(super) fn expect_type(
        &mut self,
        e: Expr,
        to: Oid,
        what: &str,
        wanted: &str,
        loc: Loc,
    ) -> Result<Expr> {
        let from = e.ty().oid;
        let set = crate::analyse::calls::returns_set(&e);
        if from != to {
            if !can_coerce(from, to, CastContext::Assignment) || category(from) == 'S' {
                let e = err!(
                    DATATYPE_MISMATCH,
                    "argument of {what} must be {wanted}, not type {}",
                    self.type_name_of(from)
                );
                return self.at(loc, e);
            }
            if !set {
                return self.coerce_type(e, TypeRef::of(to), CastContext::Assignment, false, loc);
            }
        }
        if set {
            let e = err!(DATATYPE_MISMATCH, "argument of {what} must not return a set");
            return self.at(loc, e);
        }
        Ok(e)
    }

    /// LIMIT's and OFFSET's bigint.
    pub fn bigint(&mut self, e: Expr, what: &str, loc: Loc) -> Result<Expr> {
        self.expect_type(e, INT8, what, "type bigint", loc)
    }

    /// The common type of several, as for UNION and CASE; `what` names the construct.
    pub fn common_type(&self, list: &[(Oid, Loc)], what: &str) -> Result<Oid> {
        let list: Vec<(Oid, Loc)> =
            list.iter().map(|(t, l)| (types::domains::base_type(*t), *l)).collect();
        let list = list.as_slice();
        let Some((first, _)) = list.first() else { return Ok(TEXT) };
        if *first != UNKNOWN && list.iter().all(|(t, _)| t == first) {
            return Ok(*first);
        }
        let mut chosen = UNKNOWN;
        for &(t, loc) in list {
            if t == UNKNOWN || t == chosen {
                continue;
            }
            if chosen == UNKNOWN {
                chosen = t;
                continue;
            }
            if category(t) != category(chosen) {
                let e = err!(
                    DATATYPE_MISMATCH,
                    "{what} types {} and {} cannot be matched",
                    self.type_name_of(chosen),
                    self.type_name_of(t)
                );
                return self.at(loc, e);
            }
            if !is_preferred(chosen)
                && can_coerce(chosen, t, CastContext::Implicit)
                && !can_coerce(t, chosen, CastContext::Implicit)
            {
                chosen = t;
            }
        }
        Ok(if chosen == UNKNOWN { TEXT } else { chosen })
    }

    /// `e` as the common type found for `what`.
    pub fn to_common(&mut self, e: Expr, ty: Oid, what: &str, loc: Loc) -> Result<Expr> {
        let e = e.plain();
        let from = e.ty().oid;
        if from == ty {
            return Ok(e);
        }
        if !can_coerce(from, ty, CastContext::Implicit) {
            let e = err!(
                CANNOT_COERCE,
                "{what} could not convert type {} to {}",
                self.type_name_of(from),
                self.type_name_of(ty)
            );
            return self.at(loc, e);
        }
        self.coerce_implicit(e, ty, loc)
    }

    /// An expression that is still unknown becomes text.
    pub fn known(&mut self, e: Expr, loc: Loc) -> Result<Expr> {
        if e.ty().oid == UNKNOWN { self.coerce_implicit(e, TEXT, loc) } else { Ok(e) }
    }

    /// Types that can be compared for equality (GROUP BY, DISTINCT).
    pub fn must_be_equatable(&self, ty: Oid, loc: Loc) -> Result<()> {
        if has_operator("=", ty) {
            return Ok(());
        }
        let e = err!(
            UNDEFINED_FUNCTION,
            "could not identify an equality operator for type {}",
            self.type_name_of(ty)
        );
        self.at(loc, e)
    }

    /// Types that have an order.
    pub fn must_be_sortable(&self, ty: Oid, loc: Loc) -> Result<()> {
        if has_operator("<", ty) {
            return Ok(());
        }
        let e = SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("could not identify an ordering operator for type {}", self.type_name_of(ty)),
        )
        .hint("Use an explicit ordering operator or modify the query.");
        self.at(loc, Error::from(e))
    }
}

fn has_operator(op: &str, ty: Oid) -> bool {
    if is_composite(ty) || ty == RECORD {
        return true;
    }
    if let Some(element) = element_type(ty) {
        return has_operator(op, element);
    }
    let class = types::registry::default_btree_class(ty).is_some();
    class
        || operators_by_name(op).iter().any(|o| {
            o.left == o.right
                && (o.left == ty
                    || cast(ty, o.left).is_some_and(|c| c.method == CastMethod::Binary))
        })
}
