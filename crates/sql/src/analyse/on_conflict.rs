//! ON CONFLICT: which indexes it means, and what is done then.

use super::from::table_entry;
use super::scope::Item;
use super::{Analyser, Clause};
use crate::parse::ast::{AssignTarget, Conflict, ConflictTarget, IndexElement, Loc};
use crate::query::{OnConflict, RteKind};
use base::{Oid, Result, SqlError, SqlState, err};
use engine::catalog::model::{Index, IndexColumn, RelationKind, Table};
use expr::Expr;
use std::sync::Arc;

const BTREE: Oid = Oid(403);

/// What a key of ON CONFLICT asks of the index's beside that it is of the same values.
struct Wanted {
    collation: Option<Oid>,
    /// An operator class's family, and the type that it is for.
    class: Option<(Oid, Oid)>,
}

impl Wanted {
    fn is_met(&self, column: &IndexColumn) -> bool {
        let mut classes = types::facts::operator_classes().iter();
        let has = |(family, ty): (Oid, Oid)| {
            let own = classes.find(|c| c.oid == column.opclass);
            own.is_some_and(|c| (c.family, c.input_type) == (family, ty))
        };
        self.collation.is_none_or(|c| c == column.collation) && self.class.is_none_or(has)
    }
}

pub(super) fn no_arbiter() -> base::Error {
    err!(
        INVALID_COLUMN_REFERENCE,
        "there is no unique or exclusion constraint matching the ON CONFLICT specification"
    )
}

impl Analyser<'_> {
    pub(super) fn on_conflict(&mut self, c: &Conflict, t: &Arc<Table>) -> Result<OnConflict> {
        self.level().items.clear();
        let item = self.target_item(t);
        self.level().items.push(item);
        let arbiters = self.arbiters(c, t)?;
        let Some(set) = &c.update else {
            return Ok(OnConflict { arbiters, update: None, filter: None, excluded_rte: None });
        };
        if matches!(c.target, ConflictTarget::None) {
            let e = SqlError::new(
                SqlState::SYNTAX_ERROR,
                "ON CONFLICT DO UPDATE requires inference specification or constraint name",
            )
            .hint("For example, ON CONFLICT (column_name).");
            return self.at(c.loc, e.into());
        }
        let mut entry = table_entry(t, false);
        entry.kind = RteKind::Excluded;
        entry.alias = "excluded".into();
        entry.required_privileges = 0;
        let level = self.level();
        level.rtes.push(entry);
        let rte = level.rtes.len() - 1;
        // Every bare name is a column of both: ambiguous.
        level.items.push(Item::table(rte, "excluded"));
        let update = Some(self.set_list(set, t)?);
        let filter = self.condition(c.filter.as_ref(), Clause::Where, "WHERE")?;
        Ok(OnConflict { arbiters, update, filter, excluded_rte: Some(rte) })
    }

    /// The unique indexes that ON CONFLICT's target means.
    fn arbiters(&mut self, c: &Conflict, t: &Arc<Table>) -> Result<Vec<u32>> {
        match &c.target {
            ConflictTarget::None => Ok(Vec::new()),
            ConflictTarget::Constraint(cname, _) => {
                match t.indexes.iter().find(|i| i.constraint.as_ref() == Some(cname)) {
                    // While it is rebuilt concurrently another index finds conflicts too.
                    Some(i) => {
                        let keys = i.columns[..i.key_columns].iter().map(|c| c.column);
                        self.level().rtes[0].reads(keys);
                        let twins = t
                            .indexes
                            .iter()
                            .filter(|o| o.oid == i.oid || o.ready && o.stands_for(i));
                        Ok(twins.map(|o| o.oid.0).collect())
                    }
                    None => Err(err!(
                        UNDEFINED_OBJECT,
                        "constraint \"{cname}\" for table \"{}\" does not exist",
                        t.name
                    )),
                }
            }
            ConflictTarget::Columns { elements, filter, loc } => {
                let saved = self.enter(Clause::IndexExpr);
                let (mut keys, mut wanted) = (Vec::new(), Vec::new());
                for e in elements {
                    self.refuse_order(e, *loc)?;
                    keys.push(self.conflict_key(e, t, *loc)?);
                    wanted.push(self.wanted(e)?);
                }
                self.enter(saved);
                let mut filter =
                    self.condition(filter.as_ref(), Clause::IndexPredicate, "WHERE")?;
                let below;
                let mut t = t;
                if t.kind == RelationKind::View {
                    let Some((table, columns)) = self.table_below(t)? else {
                        return Ok(Vec::new());
                    };
                    keys.iter_mut().chain(&mut filter).for_each(|e| {
                        *e = super::view_target::over_below(e, &columns);
                    });
                    below = table;
                    t = &below;
                }
                let fits = |i: &Index| {
                    let covered = |e: &Expr| keys.contains(e);
                    let own: Vec<Expr> =
                        i.columns[..i.key_columns].iter().map(|c| index_key(c, t)).collect();
                    i.unique
                        && i.ready
                        && own.iter().all(covered)
                        && keys.iter().zip(&wanted).all(|(k, wanted)| {
                            let mut of_key = own.iter().zip(&i.columns).filter(|(o, _)| *o == k);
                            of_key.any(|(_, column)| wanted.is_met(column))
                        })
                        && match (&i.predicate, &filter) {
                            (None, _) => true,
                            (Some(p), Some(f)) => {
                                implies(f, p)
                                    || crate::plan::implied::implied(p, std::slice::from_ref(f))
                            }
                            (Some(_), None) => false,
                        }
                };
                // One must be valid; others, on their way in or out, find conflicts as well.
                let fitting: Vec<_> = t.indexes.iter().filter(|i| fits(i)).collect();
                let out: Vec<u32> = fitting.iter().map(|i| i.oid.0).collect();
                if !fitting.iter().any(|i| i.valid) {
                    if !self.level().below.is_empty() {
                        // What is wrong with the view is said first.
                        self.level().no_arbiter = true;
                        return Ok(Vec::new());
                    }
                    return Err(no_arbiter());
                }
                Ok(out)
            }
        }
    }

    /// In which order an index has its keys is of no matter here, and not said.
    fn refuse_order(&self, e: &IndexElement, loc: Loc) -> Result<()> {
        let what = match (e.ordered, e.nulls_first) {
            (true, _) => "ASC/DESC",
            (false, Some(_)) => "NULLS FIRST/LAST",
            (false, None) => return Ok(()),
        };
        let e = err!(INVALID_COLUMN_REFERENCE, "{what} is not allowed in ON CONFLICT clause");
        self.at(loc, e)
    }

    fn wanted(&self, e: &IndexElement) -> Result<Wanted> {
        let collation = match &e.collation {
            Some(names) => match super::collation_of(names) {
                Ok(oid) => Some(oid),
                Err(error) => return self.at(e.loc, error),
            },
            None => None,
        };
        let named = |name: &[String]| {
            let last = name.last().map_or("", String::as_str);
            let mut classes = types::facts::operator_classes().iter();
            let found = classes.find(|c| c.method == BTREE && c.name == last);
            found.map(|c| (c.family, c.input_type)).ok_or_else(|| {
                let text = "does not exist for access method \"btree\"";
                err!(UNDEFINED_OBJECT, "operator class \"{}\" {text}", name.join("."))
            })
        };
        let class = e.opclass.as_deref().map(named).transpose()?;
        Ok(Wanted { collation, class })
    }

    fn conflict_key(&mut self, e: &IndexElement, t: &Table, loc: Loc) -> Result<Expr> {
        if let Some(column) = &e.column {
            let target = AssignTarget { column: column.clone(), indirection: Vec::new(), loc };
            let Some(c) = t.column(column) else {
                if t.kind != RelationKind::View
                    && super::dml_parts::SYSTEM_COLUMNS.contains(&column.as_str())
                {
                    // There is no index on it.
                    return Err(no_arbiter());
                }
                return self.no_column(&target.column, loc);
            };
            self.level().rtes[0].reads([c.number]);
            return Ok(Expr::Var { levels_up: 0, rte: 0, column: c.number, ty: c.ty });
        }
        match &e.expr {
            Some(x) => self.known_expr(x),
            None => self.at(e.loc, err!(INTERNAL_ERROR, "empty index element")),
        }
    }
}

/// An index key as an expression over its table.
fn index_key(c: &engine::catalog::model::IndexColumn, t: &Table) -> Expr {
    match &c.expr {
        Some(e) => (**e).clone(),
        None => {
            let ty = t
                .columns
                .get(usize::try_from(c.column - 1).unwrap_or(usize::MAX))
                .map_or(c.ty, |column| column.ty);
            Expr::Var { levels_up: 0, rte: 0, column: c.column, ty }
        }
    }
}

/// Does the condition `f` plainly contain the predicate `p`?
fn implies(f: &Expr, p: &Expr) -> bool {
    if f == p {
        return true;
    }
    match (f, p) {
        (_, Expr::And(list)) => list.iter().all(|p| implies(f, p)),
        (Expr::And(list), _) => list.iter().any(|f| implies(f, p)),
        _ => false,
    }
}
