//! CREATE STATISTICS and ALTER STATISTICS.

use super::ast::IndexElement;
use super::parser::Parser;
use super::utility::{CreateStatistics, ObjectKind, UtilityStatement as U};
use base::Result;

impl Parser<'_> {
    /// After CREATE STATISTICS.
    pub fn create_statistics(&mut self) -> Result<U> {
        let if_not_exists = self.if_not_exists();
        let unnamed = !if_not_exists && (self.is("on") || self.is_op("("));
        let name = if unnamed { None } else { Some(self.any_object_name()?) };
        let kinds = if self.is_op("(") { self.paren_list(Self::name)? } else { Vec::new() };
        self.expect("on")?;
        let elements = self.list(|p| {
            // What may follow a key of an index may not stand here.
            if p.is_name() && !p.is_op_at(1, "(") && !p.is_op_at(1, ".") {
                let loc = p.loc();
                let column = Some(p.name()?);
                return Ok(IndexElement {
                    column,
                    expr: None,
                    collation: None,
                    opclass: None,
                    descending: false,
                    ordered: false,
                    nulls_first: None,
                    loc,
                });
            }
            let element = p.index_element()?;
            let more = element.collation.is_some()
                || element.opclass.is_some()
                || element.ordered
                || element.nulls_first.is_some();
            if more { Err(p.unexpected()) } else { Ok(element) }
        })?;
        self.expect("from")?;
        let from = self.list(Self::table_ref)?;
        Ok(U::CreateStatistics(Box::new(CreateStatistics {
            if_not_exists,
            name,
            kinds,
            elements,
            from,
        })))
    }

    /// After ALTER STATISTICS.
    pub fn alter_statistics(&mut self) -> Result<U> {
        let kind = ObjectKind::Statistics;
        let if_exists = self.if_exists();
        let name = self.any_object_name()?;
        if self.accept_all(&["set", "statistics"]) {
            let target = if self.accept("default") { None } else { Some(self.signed_integer()?) };
            return Ok(U::AlterStatistics { if_exists, name, target });
        }
        // The others know no IF EXISTS.
        if if_exists {
            return Err(self.unexpected());
        }
        if self.accept_all(&["rename", "to"]) {
            return self.renamed(kind, false, name, None);
        }
        if self.accept_all(&["set", "schema"]) {
            return Ok(U::SetSchema { kind, if_exists, name, schema: self.name()? });
        }
        self.expect_all(&["owner", "to"])?;
        Ok(U::OwnerTo { kind, if_exists, name, owner: self.role_name()? })
    }
}
