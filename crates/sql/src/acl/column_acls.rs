//! Privileges on columns: what `pg_attribute.attacl` says.

use super::AclItem;
use crate::session::SessionState;
use base::{Oid, Result};
use engine::catalog::model::Table;
use std::collections::HashSet;

/// What one role may do with each column of a table beside what it may with the table.
pub(crate) struct Columns {
    /// (number, privileges, those with grant option) of the columns that are not dropped, and of system columns if there are any on those.
    columns: Vec<(i32, u32, u32)>,
}

impl Columns {
    /// Of a role and those whose privileges it has.
    ///
    /// # Errors
    /// I/O.
    pub fn of(state: &SessionState, role: Oid, table: &Table) -> Result<Columns> {
        let granted =
            table.columns.iter().any(|c| c.acl.is_some()) || !table.system_acls.is_empty();
        if !(granted && role.is_valid()) {
            return Ok(Columns::of_names(&HashSet::new(), table));
        }
        let standing = super::Standing::of(state, role);
        Ok(Columns::of_names(standing.names(state)?, table))
    }

    /// Of PUBLIC and the roles of these names.
    fn of_names(names: &HashSet<String>, table: &Table) -> Columns {
        let held = |acl: &[String]| {
            acl.iter()
                .filter_map(|item| AclItem::parse(item))
                .filter(|item| item.grantee.is_empty() || names.contains(&item.grantee))
                .fold((0, 0), |(held, may), i| (held | i.privileges, may | i.grantable))
        };
        let own = table.columns.iter().filter(|c| !c.dropped);
        let own = own.map(|c| (c.number, c.acl.as_deref().unwrap_or_default()));
        let system = table.system_acls.iter().map(|(number, acl)| (*number, acl.as_slice()));
        let columns = own.chain(system).map(|(number, acl)| {
            let (privileges, grantable) = held(acl);
            (number, privileges, grantable)
        });
        Columns { columns: columns.collect() }
    }

    /// The privileges on one column, and those of them with grant option.
    pub fn on(&self, number: i32) -> (u32, u32) {
        let found = self.columns.iter().find(|c| c.0 == number);
        found.map_or((0, 0), |(_, privileges, grantable)| (*privileges, *grantable))
    }

    /// System columns are not meant by any, nor by all.
    fn own(&self) -> impl Iterator<Item = &(i32, u32, u32)> {
        self.columns.iter().filter(|c| c.0 > 0)
    }

    /// The privileges, and those with grant option, that there are on any column.
    pub fn on_any(&self) -> (u32, u32) {
        self.own().fold((0, 0), |(held, may), c| (held | c.1, may | c.2))
    }

    /// Is there the privilege on each of `list`? 0 is the whole row, all columns; of no column: any.
    pub fn have(&self, bit: u32, list: &[i32]) -> bool {
        if list.is_empty() {
            return self.own().any(|c| c.1 & bit != 0);
        }
        list.iter().all(|number| match number {
            // Of no columns there is none.
            0 => self.own().next().is_some() && self.own().all(|c| c.1 & bit != 0),
            number => self.on(*number).0 & bit != 0,
        })
    }
}
