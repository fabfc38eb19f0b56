//! Expressions that stand alone in DDL: defaults, checks, index keys, casts to a column's type.

use super::scope::Item;
use super::{Analyser, Clause, ParamTypes};
use crate::parse::ast::{self, NO_LOC, TypeName};
use crate::query::{RangeTableEntry, RteKind};
use base::{Oid, Result, err};
use engine::catalog::model::{CatalogView, Table};
use expr::tree::CallForm;
use expr::{Expr, TypeRef};
use types::{Env, Volatility, oids};

/// What stands behind every analysis of DDL: the catalogs, the session, the source text.
#[derive(Clone, Copy)]
struct Context<'a> {
    catalog: &'a dyn CatalogView,
    env: &'a dyn Env,
    source: &'a str,
}

impl Context<'_> {
    /// Runs `f` with the table's columns in sight (range-table entry 0).
    fn run<T>(
        self,
        table: Option<&Table>,
        clause: Clause,
        f: impl FnOnce(&mut Analyser<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut params = ParamTypes::default();
        let mut a = Analyser::new(self.catalog, self.env, self.source, &mut params);
        a.level();
        if let Some(t) = table {
            let level = a.level();
            level.rtes.push(super::from::table_entry(t, false));
            let mut item = Item::table(0, t.name.clone());
            item.schema = Some(t.namespace_name.clone());
            level.items.push(item);
        }
        a.enter(clause);
        f(&mut a)
    }
}

/// A column's DEFAULT, coerced to the column's type.
///
/// # Errors
/// All that PostgreSQL raises for it.
pub fn analyse_default(
    e: &ast::Expr,
    column: &str,
    ty: TypeRef,
    source: &str,
    catalog: &dyn CatalogView,
    env: &dyn Env,
) -> Result<Expr> {
    Context { catalog, env, source }.run(None, Clause::Default, |a| {
        let x = a.expr(e)?;
        let from = x.ty().oid;
        if !super::coerce::can_coerce(from, ty.oid, types::CastContext::Assignment) {
            let e2 = base::SqlError::new(
                base::SqlState::DATATYPE_MISMATCH,
                format!(
                    "column \"{column}\" is of type {} but default expression is of type {}",
                    a.type_name_of(ty.oid),
                    a.type_name_of(from)
                ),
            )
            .hint("You will need to rewrite or cast the expression.");
            return Err(e2.into());
        }
        a.coerce(x, ty, types::CastContext::Assignment, false, e.loc).map(Expr::plain)
    })
}

/// A CHECK condition over `table`'s columns (entry 0).
///
/// # Errors
/// All that PostgreSQL raises for it.
pub fn analyse_check(
    e: &ast::Expr,
    table: &Table,
    source: &str,
    catalog: &dyn CatalogView,
    env: &dyn Env,
) -> Result<Expr> {
    Context { catalog, env, source }.run(Some(table), Clause::Check, |a| {
        let x = a.expr(e)?;
        if let Some(name) = place_column(&x) {
            let text = format!("system column \"{name}\" reference in check constraint is invalid");
            return a.at(e.loc, err!(INVALID_COLUMN_REFERENCE, "{text}"));
        }
        a.boolean(x, "CHECK", e.loc)
    })
}

/// A CHECK condition of a domain: `value`, column 1 of entry 0, is of type `ty`.
///
/// # Errors
/// All that PostgreSQL raises for it.
pub fn analyse_domain_check(
    e: &ast::Expr,
    ty: TypeRef,
    source: &str,
    catalog: &dyn CatalogView,
    env: &dyn Env,
) -> Result<Expr> {
    Context { catalog, env, source }.run(None, Clause::Check, |a| {
        let level = a.level();
        level.rtes.push(RangeTableEntry {
            // Nothing that is read: the value is given.
            kind: RteKind::Excluded,
            alias: String::new(),
            has_alias: false,
            column_aliases: 0,
            column_names: vec!["value".to_owned()],
            column_types: vec![ty],
            required_privileges: 0,
            used: None,
            check_as: 0,
            lateral: false,
        });
        let mut item = Item::table(0, "");
        item.by_name = false;
        level.items.push(item);
        let x = a.expr(e)?;
        a.boolean(x, "CHECK", e.loc)
    })
}

/// A system column that a row being formed does not have yet, which is any but `tableoid`.
fn place_column(e: &Expr) -> Option<&'static str> {
    let mut found = None;
    e.walk(&mut |e| {
        if let Expr::Var { column: column @ (-5..=-1), .. } = e {
            found = super::scope::system_column(*column);
        }
    });
    found
}

/// A GENERATED column's expression, coerced to the column's type.
///
/// # Errors
/// All that PostgreSQL raises for it.
pub fn analyse_generated(
    e: &ast::Expr,
    column: &str,
    ty: TypeRef,
    table: &Table,
    source: &str,
    catalog: &dyn CatalogView,
    env: &dyn Env,
) -> Result<Expr> {
    let x = Context { catalog, env, source }.run(Some(table), Clause::Generated, |a| {
        let x = a.expr(e)?;
        if let Some(name) = place_column(&x) {
            let text =
                format!("cannot use system column \"{name}\" in column generation expression");
            return a.at(e.loc, err!(INVALID_COLUMN_REFERENCE, "{text}"));
        }
        if let Err(error) = check_generated(&x, table) {
            return a.at(e.loc, error);
        }
        a.assign(x, ty, column, e.loc)
    })?;
    if !immutable(&x) {
        return Err(err!(INVALID_OBJECT_DEFINITION, "generation expression is not immutable"));
    }
    Ok(x)
}

/// A generated column is made of columns that are not: they are computed in no order.
fn check_generated(e: &Expr, table: &Table) -> Result<()> {
    let mut found = Ok(());
    e.walk(&mut |e| {
        let Expr::Var { column, .. } = e else { return };
        if *column == 0 {
            let text = "cannot use whole-row variable in column generation expression";
            found = Err(base::SqlError::new(base::SqlState::INVALID_OBJECT_DEFINITION, text)
                .detail("This would cause the generated column to depend on its own value.")
                .into());
        } else if let Some(c) =
            table.columns.iter().find(|c| c.number == *column && c.is_generated())
        {
            let text = format!(
                "cannot use generated column \"{}\" in column generation expression",
                c.name
            );
            found = Err(base::SqlError::new(base::SqlState::INVALID_OBJECT_DEFINITION, text)
                .detail("A generated column cannot reference another generated column.")
                .into());
        }
    });
    found
}

/// COPY FROM's WHERE over `table`'s columns (entry 0). It is asked before generated columns are computed.
///
/// # Errors
/// All that PostgreSQL raises for it.
pub fn analyse_copy_filter(
    e: &ast::Expr,
    table: &Table,
    source: &str,
    catalog: &dyn CatalogView,
    env: &dyn Env,
) -> Result<Expr> {
    let x = analyse_check(e, table, source, catalog, env)?;
    let whole = x.any(&mut |e| matches!(e, Expr::Var { column: 0, .. }));
    let asked = |c: &engine::catalog::model::Column| {
        whole || x.any(&mut |e| matches!(e, Expr::Var { column, .. } if *column == c.number))
    };
    if let Some(c) = table.columns.iter().find(|c| c.is_generated() && !c.dropped && asked(c)) {
        return Err(base::SqlError::new(
            base::SqlState::INVALID_COLUMN_REFERENCE,
            "generated columns are not supported in COPY FROM WHERE conditions",
        )
        .detail(format!("Column \"{}\" is a generated column.", c.name))
        .into());
    }
    Ok(x)
}

/// An index key.
#[derive(Clone, Debug)]
pub struct IndexExpression {
    /// The expression over entry 0, unless it is a plain column.
    pub expr: Option<Expr>,
    /// The plain column's number, or 0.
    pub column: i32,
    /// The key's type.
    pub ty: TypeRef,
    /// Its collation, if its type has one.
    pub collation: Oid,
    /// The name PostgreSQL makes the index's name of.
    pub name: String,
}

/// A key of CREATE INDEX.
///
/// # Errors
/// All that PostgreSQL raises for it.
pub fn analyse_index_expr(
    element: &ast::IndexElement,
    table: &Table,
    source: &str,
    catalog: &dyn CatalogView,
    env: &dyn Env,
) -> Result<IndexExpression> {
    if let Some(n) = &element.column {
        let Some(c) = table.column(n) else {
            if super::scope::is_system_column(n) {
                let text = "index creation on system columns is not supported";
                return Err(err!(FEATURE_NOT_SUPPORTED, "{text}"));
            }
            let e = err!(UNDEFINED_COLUMN, "column \"{n}\" does not exist");
            return Err(crate::parse::error_at(source, e, NO_LOC));
        };
        let (column, ty, collation, name) = (c.number, c.ty, c.collation, n.clone());
        return Ok(IndexExpression { expr: None, column, ty, collation, name });
    }
    let Some(e) = &element.expr else {
        return Err(err!(INTERNAL_ERROR, "an index element is empty"));
    };
    let x = Context { catalog, env, source }
        .run(Some(table), Clause::IndexExpr, |a| a.known_expr(e))?;
    refuse_domain_check(&x)?;
    if !immutable(&x) {
        return Err(err!(
            INVALID_OBJECT_DEFINITION,
            "functions in index expression must be marked IMMUTABLE"
        ));
    }
    let name = match super::select::column_label(e).as_str() {
        "?column?" => "expr".to_owned(),
        n => n.to_owned(),
    };
    let collation = super::collation::of_expr(&x, table);
    // `(x COLLATE y)` is no other key than `x COLLATE y`.
    let mut x = x;
    while let Expr::Collate { arg, .. } = x {
        x = *arg;
    }
    if let Expr::Var { column, ty, .. } = &x
        && *column > 0
    {
        return Ok(IndexExpression { expr: None, column: *column, ty: *ty, collation, name });
    }
    let ty = x.ty();
    Ok(IndexExpression { expr: Some(x), column: 0, ty, collation, name })
}

/// An expression of CREATE STATISTICS.
///
/// # Errors
/// All that PostgreSQL raises for it.
pub fn analyse_statistics_expr(
    e: &ast::Expr,
    table: &Table,
    source: &str,
    catalog: &dyn CatalogView,
    env: &dyn Env,
) -> Result<Expr> {
    let context = Context { catalog, env, source };
    let x = context.run(Some(table), Clause::Statistics, |a| a.known_expr(e))?;
    refuse_domain_check(&x)?;
    Ok(x)
}

/// A partial index's WHERE.
///
/// # Errors
/// All that PostgreSQL raises for it.
pub fn analyse_index_predicate(
    e: &ast::Expr,
    table: &Table,
    source: &str,
    catalog: &dyn CatalogView,
    env: &dyn Env,
) -> Result<Expr> {
    let x = Context { catalog, env, source }.run(Some(table), Clause::IndexPredicate, |a| {
        let x = a.expr(e)?;
        a.boolean(x, "WHERE", e.loc)
    })?;
    refuse_domain_check(&x)?;
    if !immutable(&x) {
        return Err(err!(
            INVALID_OBJECT_DEFINITION,
            "functions in index predicate must be marked IMMUTABLE"
        ));
    }
    Ok(x)
}

/// ALTER COLUMN … TYPE … USING: the new value over the old row. Without USING the column itself is cast.
///
/// # Errors
/// All that PostgreSQL raises for it.
pub fn analyse_using(
    e: Option<&ast::Expr>,
    column: &str,
    ty: TypeRef,
    table: &Table,
    source: &str,
    catalog: &dyn CatalogView,
    env: &dyn Env,
) -> Result<Expr> {
    Context { catalog, env, source }.run(Some(table), Clause::AlterUsing, |a| {
        let (x, loc) = match e {
            Some(e) => (a.declared_expr(e)?, e.loc),
            None => match a.bare_column(column, NO_LOC)? {
                Some(x) => (x, NO_LOC),
                None => return a.no_column(column, NO_LOC),
            },
        };
        if !super::coerce::can_coerce(x.ty().oid, ty.oid, types::CastContext::Assignment) {
            let to = types::format_type(ty.oid, ty.typmod);
            let (what, hint) = if e.is_some() {
                (
                    format!("result of USING clause for column \"{column}\" cannot be cast automatically to type {to}"),
                    "You might need to add an explicit cast.".to_owned(),
                )
            } else {
                (
                    format!("column \"{column}\" cannot be cast automatically to type {to}"),
                    format!("You might need to specify \"USING {column}::{to}\"."),
                )
            };
            return Err(base::SqlError::new(base::SqlState::DATATYPE_MISMATCH, what)
                .hint(hint)
                .into());
        }
        a.coerce(x, ty, types::CastContext::Assignment, false, loc).map(Expr::plain)
    })
}

/// A value in a partition bound, coerced to the key's type.
///
/// # Errors
/// All that PostgreSQL raises for it.
pub fn analyse_partition_value(
    e: &ast::Expr,
    column: &str,
    ty: TypeRef,
    source: &str,
    catalog: &dyn CatalogView,
    env: &dyn Env,
) -> Result<Expr> {
    Context { catalog, env, source }.run(None, Clause::Partition, |a| {
        let x = a.expr(e)?;
        a.assign(x, ty, column, e.loc)
    })
}

/// EXECUTE's arguments, coerced to the prepared statement's parameter types.
///
/// # Errors
/// 42601 for a wrong number, and all that coercion raises.
pub fn analyse_execute_args(
    args: &[ast::Expr],
    name: &str,
    types: &[base::Oid],
    source: &str,
    catalog: &dyn CatalogView,
    env: &dyn Env,
) -> Result<Vec<Expr>> {
    if args.len() != types.len() {
        return Err(base::SqlError::new(
            base::SqlState::SYNTAX_ERROR,
            format!("wrong number of parameters for prepared statement \"{name}\""),
        )
        .detail(format!("Expected {} parameters but got {}.", types.len(), args.len()))
        .into());
    }
    Context { catalog, env, source }.run(None, Clause::ExecuteArg, |a| {
        let mut out = Vec::new();
        for (i, (e, ty)) in args.iter().zip(types).enumerate() {
            let x = a.declared_expr(e)?;
            let from = x.ty().oid;
            if !super::coerce::can_coerce(from, *ty, types::CastContext::Assignment) {
                let e2 = base::SqlError::new(
                    base::SqlState::DATATYPE_MISMATCH,
                    format!(
                        "parameter ${} of type {} cannot be coerced to the expected type {}",
                        i + 1,
                        a.type_name_of(from),
                        a.type_name_of(*ty)
                    ),
                )
                .hint("You will need to rewrite or cast the expression.");
                return a.at(e.loc, e2.into());
            }
            out.push(a.coerce(
                x,
                TypeRef::of(*ty),
                types::CastContext::Assignment,
                false,
                e.loc,
            )?);
        }
        Ok(out)
    })
}

/// `e` for a column of type `ty`: the assignment cast and the length coercion.
///
/// # Errors
/// 42804 when there is no such cast.
pub fn coerce_assignment(
    e: Expr,
    ty: TypeRef,
    column: &str,
    catalog: &dyn CatalogView,
    env: &dyn Env,
) -> Result<Expr> {
    Context { catalog, env, source: "" }
        .run(None, Clause::Default, |a| a.assign(e, ty, column, NO_LOC))
}

/// A value of type `from`, the only column of a row, for a variable of type `to`: where there is no cast it goes by its text.
///
/// # Errors
/// Those of analysing the cast.
pub fn analyse_variable_cast(
    from: TypeRef,
    to: TypeRef,
    catalog: &dyn CatalogView,
    env: &dyn Env,
) -> Result<Expr> {
    use types::CastContext::Assignment;
    let value = Expr::Slot { index: 0, ty: from.base() }.declared(from);
    Context { catalog, env, source: "" }.run(None, Clause::Target, |a| {
        if super::coerce::can_coerce(from.oid, to.oid, Assignment) {
            return a.coerce(value, to, Assignment, false, NO_LOC).map(Expr::plain);
        }
        let base = to.base();
        let ty = TypeRef::of(base.oid);
        let read = Expr::CoerceViaIo { arg: Box::new(value.plain()), ty, explicit: false };
        let fitted = a.fit(read, base, false);
        Ok(if base == to { fitted } else { super::domains::to_domain(fitted, to, false) })
    })
}

/// `e`, a column's default, for what the column's type is to be. Casts that nobody wrote led to the type that it was, and go: a number that
/// does not fit that may fit the new one.
///
/// # Errors
/// 42804 when there is no such cast.
pub fn retyped_default(
    e: Expr,
    ty: TypeRef,
    column: &str,
    catalog: &dyn CatalogView,
    env: &dyn Env,
) -> Result<Expr> {
    coerce_assignment(as_written(e), ty, column, catalog, env)
}

/// What stands below casts that nobody wrote.
fn as_written(e: Expr) -> Expr {
    match e {
        Expr::Relabel { arg, explicit: false, .. }
        | Expr::CoerceViaIo { arg, explicit: false, .. }
        | Expr::CoerceToDomain { arg, explicit: false, .. } => as_written(*arg),
        Expr::Call { form: CallForm::ImplicitCast, mut args, .. } if !args.is_empty() => {
            as_written(args.swap_remove(0))
        }
        e => e,
    }
}

/// The type that a type's name means.
///
/// # Errors
/// 42704 when there is none, 22023 for a bad modifier.
pub fn resolve_type_name(
    ty: &TypeName,
    source: &str,
    catalog: &dyn CatalogView,
    env: &dyn Env,
) -> Result<TypeRef> {
    Context { catalog, env, source }.run(None, Clause::Target, |a| a.type_ref(ty))
}

/// Whoever looks after an index has no session to check values by.
fn refuse_domain_check(e: &Expr) -> Result<()> {
    if e.any(&mut |e| matches!(e, Expr::CoerceToDomain { .. })) {
        return Err(base::Error::unsupported("a cast to a domain in an index"));
    }
    Ok(())
}

/// Is the type an enum, or an array of one?
fn has_labels(ty: base::Oid) -> bool {
    types::enums::OIDS.contains(&ty.0)
}

/// Does the expression always give the same for the same row?
fn immutable(e: &Expr) -> bool {
    !e.any(&mut |e| match e {
        // `||` of a text and of something else, which is as its output is.
        Expr::Call { function: 2003 | 2004, args, .. }
            if args.iter().all(|a| is_plain_output(a.ty().oid)) =>
        {
            false
        }
        Expr::Call { function, .. } => {
            let oid = base::Oid(*function);
            match types::facts::proc(oid) {
                Some(p) => p.volatility != 'i',
                None => types::registry::function(oid)
                    .is_some_and(|f| f.volatility != Volatility::Immutable),
            }
        }
        Expr::SqlValue { .. } | Expr::NextValue { .. } => true,
        Expr::Json(json) => !json_is_steady(json),
        // Through text: dates depend on settings, and labels of enums may be renamed.
        Expr::CoerceViaIo { arg, ty, .. } => {
            let steady = |function: &str| {
                types::facts::procs_by_name(function).iter().all(|p| p.volatility == 'i')
            };
            let output = types::type_info(arg.ty().oid).is_some_and(|t| steady(t.output));
            let input = types::type_info(ty.oid).is_some_and(|t| steady(t.input));
            !(output && input) || has_labels(arg.ty().oid) || has_labels(ty.oid)
        }
        _ => false,
    })
}

/// Does SQL/JSON's expression depend on nothing but its arguments?
fn json_is_steady(json: &expr::json::JsonExpr) -> bool {
    use expr::json::JsonExprKind;
    let steady = |ty: base::Oid| is_plain_output(ty) || matches!(ty, oids::JSON | oids::JSONB);
    match &json.kind {
        JsonExprKind::Is { .. } => true,
        JsonExprKind::Table(_) => false,
        JsonExprKind::Make(_) => json.args.iter().all(|a| steady(a.ty().oid)),
        // A path's dates and times may depend on the time zone.
        JsonExprKind::Find(find) => {
            let timeless = |text: &str| [".date", ".time"].iter().all(|m| !text.contains(m));
            let path = match &json.args[1] {
                Expr::Const(c) => matches!(&c.value, types::Datum::Text(t) if timeless(t)),
                _ => false,
            };
            path && steady(find.returning.oid)
        }
    }
}

/// Types whose text is the same whatever is set.
fn is_plain_output(ty: base::Oid) -> bool {
    matches!(
        ty,
        oids::TEXT
            | oids::VARCHAR
            | oids::BPCHAR
            | oids::NAME
            | oids::BOOL
            | oids::INT2
            | oids::INT4
            | oids::INT8
            | oids::FLOAT4
            | oids::FLOAT8
            | oids::NUMERIC
            | oids::UUID
    )
}
