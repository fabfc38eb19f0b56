//! What is told of a row that a constraint or a view refuses.
//!
//! # Invariants
//! Who may not read the table is shown the columns that the statement named, and those that he may read.

use super::{TableWriter, shown};
use crate::acl::SELECT;
use crate::exec::context::ExecContext;
use base::{Error, SqlError, SqlState};
use engine::catalog::model::{Column, Index, Table};
use types::Datum;

impl TableWriter {
    /// `e` with the row that it is about, as far as the user may see that.
    pub(super) fn with_row(&self, e: SqlError, row: &[Datum], x: &ExecContext<'_>) -> SqlError {
        let may_read = x.relations.check_privileges(&self.table, SELECT, None, 0).is_ok();
        let only = self.named.as_ref().filter(|_| !may_read);
        let may_see = |n| x.relations.may_read(&self.table, &[n]);
        let shown = |c: &&Column| {
            !c.dropped && only.is_none_or(|list| list.contains(&c.number) || may_see(c.number))
        };
        let columns: Vec<&Column> = self.table.columns.iter().filter(shown).collect();
        let values: Vec<String> = columns.iter().map(|c| shown_value(c, row, x)).collect();
        let values = values.join(", ");
        match only {
            None => e.detail(format!("Failing row contains ({values}).")),
            Some(_) if columns.is_empty() => e,
            Some(_) => {
                let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
                let names = names.join(", ");
                e.detail(format!("Failing row contains ({names}) = ({values})."))
            }
        }
    }

    /// A row that a view written through does not take.
    pub fn fails_view(&self, view: &str, row: &[Datum], x: &ExecContext<'_>) -> Error {
        let message = format!("new row violates check option for view \"{view}\"");
        let e = SqlError::new(SqlState::WITH_CHECK_OPTION_VIOLATION, message);
        self.with_row(e, row, x).into()
    }
}

/// May the user see an index's key? Of one with expressions, who may read the whole table.
pub(crate) fn may_show_key(x: &ExecContext<'_>, table: &Table, index: &Index) -> bool {
    let keys = &index.columns[..index.key_columns];
    if keys.iter().any(|c| c.expr.is_some()) {
        return x.relations.check_privileges(table, SELECT, None, 0).is_ok();
    }
    let columns: Vec<i32> = keys.iter().map(|c| c.column).collect();
    x.relations.may_read(table, &columns)
}

/// A value of a row in an error, cut to 64 bytes.
fn shown_value(c: &Column, row: &[Datum], x: &ExecContext<'_>) -> String {
    if c.is_virtual() {
        return "virtual".to_owned();
    }
    let mut s = shown(c.ty.oid, &row[c.number as usize - 1], x);
    if s.len() > 64 {
        let cut = (0..=64).rev().find(|n| s.is_char_boundary(*n)).unwrap_or(0);
        s.truncate(cut);
        s.push_str("...");
    }
    s
}
