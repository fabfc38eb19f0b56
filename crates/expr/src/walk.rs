//! Walking and rewriting expression trees.

use crate::tree::{
    AggregateCall, CaseWhen, Expr, SortKey, SqlValueFunction, SubLinkKind, TypeRef, WindowCall,
};
use types::oids;

/// Calls `f` on each direct child of an expression, lent or to be changed as the names given say.
macro_rules! children {
    ($this:expr, $f:ident, $iter:ident, $call:path) => {
        match $this {
            Expr::Const(_)
            | Expr::Var { .. }
            | Expr::Slot { .. }
            | Expr::Param { .. }
            | Expr::ExecParam { .. }
            | Expr::CaseTestValue(_)
            | Expr::SqlValue { .. }
            | Expr::Grouping(_)
            | Expr::SubLinkColumn { .. }
            | Expr::Default(_)
            | Expr::CurrentOf { .. }
            | Expr::NextValue { .. } => {}
            Expr::Call { args, .. }
            | Expr::Coalesce { args, .. }
            | Expr::MinMax { args, .. }
            | Expr::And(args)
            | Expr::Or(args)
            | Expr::Array { elements: args, .. }
            | Expr::Row { fields: args, .. } => args.$iter().for_each($f),
            Expr::Json(json) => {
                let crate::json::JsonExpr { args, .. } = $call(json);
                args.$iter().for_each($f);
            }
            Expr::ScalarArrayOp { left, array, .. } => {
                $f(left);
                $f(array);
            }
            Expr::Distinct { left, right, .. } | Expr::NullIf { left, right, .. } => {
                $f(left);
                $f(right);
            }
            Expr::Not(arg)
            | Expr::IsNull { arg, .. }
            | Expr::BoolTest { arg, .. }
            | Expr::Field { arg, .. }
            | Expr::CoerceViaIo { arg, .. }
            | Expr::Relabel { arg, .. }
            | Expr::CoerceToDomain { arg, .. }
            | Expr::Collate { arg, .. } => $f(arg),
            Expr::ArrayCoerce { arg, element, .. } => {
                $f(arg);
                $f(element);
            }
            Expr::Case { operand, arms, otherwise, .. } => {
                if let Some(o) = operand {
                    $f(o);
                }
                for CaseWhen { when, then } in arms {
                    $f(when);
                    $f(then);
                }
                if let Some(o) = otherwise {
                    $f(o);
                }
            }
            Expr::RowCompare { left, right, .. } => {
                left.$iter().for_each(&mut *$f);
                right.$iter().for_each($f);
            }
            Expr::FieldStore { arg, value, .. } => {
                $f(arg);
                $f(value);
            }
            Expr::Subscript { arg, indexes, assign, .. } => {
                $f(arg);
                for (a, b) in indexes {
                    if let Some(a) = a {
                        $f(a);
                    }
                    if let Some(b) = b {
                        $f(b);
                    }
                }
                if let Some(value) = assign {
                    $f(value);
                }
            }
            Expr::Aggregate(a) => {
                let AggregateCall { args, order_by, filter, .. } = $call(a);
                args.$iter().for_each(&mut *$f);
                order_by.$iter().for_each(|SortKey { expr, .. }| $f(expr));
                if let Some(x) = filter {
                    $f(x);
                }
            }
            Expr::Window(w) => {
                let WindowCall { args, filter, .. } = $call(w);
                args.$iter().for_each(&mut *$f);
                if let Some(x) = filter {
                    $f(x);
                }
            }
            Expr::SubLink { test, .. } => {
                if let Some(t) = test {
                    $f(t);
                }
            }
            Expr::SubPlan { test, args, .. } => {
                if let Some(t) = test {
                    $f(t);
                }
                args.$iter().for_each(|(_, e)| $f(e));
            }
        }
    };
}

impl Expr {
    /// The type of the value.
    pub fn ty(&self) -> TypeRef {
        let boolean = TypeRef::of(oids::BOOL);
        match self {
            Expr::Const(c) => c.ty,
            Expr::Var { ty, .. }
            | Expr::Slot { ty, .. }
            | Expr::Param { ty, .. }
            | Expr::ExecParam { ty, .. }
            | Expr::Call { ty, .. }
            | Expr::NullIf { ty, .. }
            | Expr::Case { ty, .. }
            | Expr::Coalesce { ty, .. }
            | Expr::MinMax { ty, .. }
            | Expr::Array { ty, .. }
            | Expr::Row { ty, .. }
            | Expr::Field { ty, .. }
            | Expr::FieldStore { ty, .. }
            | Expr::Subscript { ty, .. }
            | Expr::CoerceViaIo { ty, .. }
            | Expr::Relabel { ty, .. }
            | Expr::CoerceToDomain { ty, .. }
            | Expr::ArrayCoerce { ty, .. }
            | Expr::SqlValue { ty, .. }
            | Expr::SubLinkColumn { ty, .. }
            | Expr::NextValue { ty, .. } => *ty,
            Expr::CaseTestValue(ty) | Expr::Default(ty) => *ty,
            Expr::SubLink { kind, ty, .. } | Expr::SubPlan { kind, ty, .. } => match kind {
                SubLinkKind::Exists | SubLinkKind::Any | SubLinkKind::All => boolean,
                _ => *ty,
            },
            Expr::Aggregate(a) => a.ty,
            Expr::Window(w) => w.ty,
            Expr::Json(json) => json.ty,
            Expr::Collate { arg, .. } => arg.ty(),
            Expr::Grouping(_) => TypeRef::of(oids::INT4),
            Expr::CurrentOf { .. } => TypeRef::of(oids::TID),
            Expr::ScalarArrayOp { .. }
            | Expr::And(_)
            | Expr::Or(_)
            | Expr::Not(_)
            | Expr::IsNull { .. }
            | Expr::BoolTest { .. }
            | Expr::Distinct { .. }
            | Expr::RowCompare { .. } => boolean,
        }
    }

    /// The expression, said to be of a type which is a domain, or array of one, over its own. Nothing but what declares outputs, and says
    /// what they are, asks for that: everybody else wants [`Expr::plain`].
    #[must_use]
    pub fn declared(self, ty: TypeRef) -> Expr {
        if ty.base() == ty {
            return self;
        }
        Expr::Relabel { arg: Box::new(self), ty: TypeRef::of(ty.oid), explicit: false }
    }

    /// The expression as one of the type that its values have: without [`Expr::declared`].
    #[must_use]
    pub fn plain(self) -> Expr {
        match self {
            Expr::Relabel { arg, ty, .. } if types::domains::OIDS.contains(&ty.oid.0) => *arg,
            e => e,
        }
    }

    /// [`Expr::plain`] of an expression that is lent.
    pub fn as_plain(&self) -> &Expr {
        match self {
            Expr::Relabel { arg, ty, .. } if types::domains::OIDS.contains(&ty.oid.0) => arg,
            e => e,
        }
    }

    /// Is this the value of an assignment to a part of what [`Expr::CaseTestValue`] stands for?
    pub(crate) fn changes_test_value(&self) -> bool {
        match self {
            Expr::FieldStore { arg, .. } | Expr::Subscript { arg, assign: Some(_), .. } => {
                matches!(**arg, Expr::CaseTestValue(_)) || arg.changes_test_value()
            }
            _ => false,
        }
    }

    /// Calls `f` on each direct child (sub-selects are not entered).
    pub fn for_children<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        children!(self, f, iter, Box::as_ref)
    }

    /// Calls `f` on this expression and everything in it, outside in.
    pub fn walk<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        f(self);
        self.for_children(&mut |c| c.walk(f));
    }

    /// True if `f` holds for this expression or anything in it.
    pub fn any(&self, f: &mut dyn FnMut(&Expr) -> bool) -> bool {
        if f(self) {
            return true;
        }
        let mut found = false;
        self.for_children(&mut |c| found = found || c.any(f));
        found
    }

    /// The same expression with each direct child replaced by what `f` makes of it.
    pub fn map_children(&self, f: &mut dyn FnMut(&Expr) -> Expr) -> Expr {
        let list = |v: &[Expr], f: &mut dyn FnMut(&Expr) -> Expr| -> Vec<Expr> {
            v.iter().map(f).collect()
        };
        let mut e = self.clone_shallow();
        match (self, &mut e) {
            (Expr::Call { args, .. }, Expr::Call { args: out, .. })
            | (Expr::Coalesce { args, .. }, Expr::Coalesce { args: out, .. })
            | (Expr::MinMax { args, .. }, Expr::MinMax { args: out, .. })
            | (Expr::And(args), Expr::And(out))
            | (Expr::Or(args), Expr::Or(out))
            | (Expr::Array { elements: args, .. }, Expr::Array { elements: out, .. })
            | (Expr::Row { fields: args, .. }, Expr::Row { fields: out, .. }) => {
                *out = list(args, f);
            }
            _ => e.for_children_mut(&mut |c| *c = f(c)),
        }
        e
    }

    /// Clones, leaving out the long child lists that `map_children` fills itself.
    fn clone_shallow(&self) -> Expr {
        match self {
            Expr::Call { function, arg_types, ty, operator, form, .. } => Expr::Call {
                function: *function,
                args: Vec::new(),
                arg_types: arg_types.clone(),
                ty: *ty,
                operator: *operator,
                form: *form,
            },
            Expr::And(_) => Expr::And(Vec::new()),
            Expr::Or(_) => Expr::Or(Vec::new()),
            other => other.clone(),
        }
    }

    /// Calls `f` on each direct child, to change it.
    pub fn for_children_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        children!(self, f, iter_mut, Box::as_mut)
    }

    /// Rewrites in place, outside in: where `f` returns true its result is not entered again.
    pub fn rewrite(&mut self, f: &mut dyn FnMut(&mut Expr) -> bool) {
        if !f(self) {
            self.for_children_mut(&mut |c| c.rewrite(f));
        }
    }
}

/// The function of `pg_proc` that yields the value, for those that have one.
pub(crate) fn sql_value_function(kind: SqlValueFunction) -> Option<&'static str> {
    Some(match kind {
        SqlValueFunction::CurrentUser | SqlValueFunction::CurrentRole => "current_user",
        SqlValueFunction::SessionUser => "session_user",
        SqlValueFunction::CurrentCatalog => "current_database",
        SqlValueFunction::CurrentSchema => "current_schema",
        _ => return None,
    })
}
