//! Relations and types by name.

use super::Analyser;
use super::coerce::array_type;
use crate::parse::ast::{ExprKind, Loc, ObjectName, TypeName};
use base::{Oid, Result, SqlState, err};
use engine::catalog::model::Table;
use expr::TypeRef;
use std::sync::Arc;
use types::typename::type_by_typname;

impl Analyser<'_> {
    /// The relation of that name.
    pub fn relation(&self, name: &ObjectName) -> Result<Arc<Table>> {
        if let Some(c) = &name.catalog
            && *c != self.catalog.database_name()
        {
            let e = err!(
                FEATURE_NOT_SUPPORTED,
                "cross-database references are not implemented: \"{name}\""
            );
            return self.at(name.loc, e);
        }
        match self.catalog.table_by_name(name.schema.as_deref(), &name.name) {
            Ok(Some(t)) => Ok(t),
            Err(e) if e.state() == SqlState::INSUFFICIENT_PRIVILEGE => self.at(name.loc, e),
            Err(e) => Err(e),
            Ok(None) => {
                let full = match &name.schema {
                    Some(s) => format!("{s}.{}", name.name),
                    None => name.name.clone(),
                };
                let e = err!(UNDEFINED_TABLE, "relation \"{full}\" does not exist");
                self.at(name.loc, e)
            }
        }
    }

    fn type_oid(&self, names: &[String], loc: Loc) -> Result<Oid> {
        let (schema, name) = match names {
            [n] => (None, n),
            [.., s, n] => (Some(s.as_str()), n),
            [] => return Err(err!(SYNTAX_ERROR, "type name is empty")),
        };
        if schema.is_none_or(|s| s == "pg_catalog")
            && let Some(t) = type_by_typname(name)
        {
            return Ok(t.oid);
        }
        if let Some(oid) = self.catalog.type_by_name(schema, name)? {
            return Ok(oid);
        }
        // a table's row type
        if let Some(t) = self.catalog.table_by_name(schema, name)?
            && t.row_type.is_valid()
        {
            return Ok(t.row_type);
        }
        if let Some(s) = schema
            && self.catalog.schema_by_name(s)?.is_none()
        {
            let e = err!(INVALID_SCHEMA_NAME, "schema \"{s}\" does not exist");
            return self.at(loc, e);
        }
        let e = err!(UNDEFINED_OBJECT, "type \"{}\" does not exist", names.join("."));
        self.at(loc, e)
    }

    /// The type that was written.
    pub fn type_ref(&self, ty: &TypeName) -> Result<TypeRef> {
        if ty.percent_type {
            let mut names = ty.names.clone();
            let column = names.pop().unwrap_or_default();
            let table = names.pop().unwrap_or_default();
            let object =
                ObjectName { catalog: None, schema: names.pop(), name: table, loc: ty.loc };
            let table = self.relation(&object)?;
            return match table.column(&column) {
                Some(c) => Ok(c.declared()),
                None => self.at(
                    ty.loc,
                    err!(
                        UNDEFINED_COLUMN,
                        "column \"{column}\" of relation \"{}\" does not exist",
                        table.name
                    ),
                ),
            };
        }
        let mut oid = self.type_oid(&ty.names, ty.loc)?;
        let mut typmod = ty.fixed_typmod.unwrap_or(-1);
        if !ty.modifiers.is_empty() {
            let mut numbers = Vec::new();
            for m in &ty.modifiers {
                let n = match &m.kind {
                    ExprKind::Number(n) | ExprKind::String(n) => n.parse::<i32>().ok(),
                    _ => None,
                };
                match n {
                    Some(n) => numbers.push(n),
                    None => {
                        let e = err!(
                            SYNTAX_ERROR,
                            "type modifiers must be simple constants or identifiers"
                        );
                        return self.at(ty.loc, e);
                    }
                }
            }
            typmod = match types::typmod_in(oid, &numbers) {
                Ok(t) => t,
                Err(e) => return self.at(ty.loc, e),
            };
        }
        if ty.array_dims > 0 {
            match array_type(oid) {
                Some(a) => oid = a,
                None if types::domains::is_domain(oid) => {
                    let e = base::Error::unsupported("an array of a domain over an array");
                    return self.at(ty.loc, e);
                }
                None => {
                    let e =
                        err!(UNDEFINED_OBJECT, "type \"{}[]\" does not exist", ty.names.join("."));
                    return self.at(ty.loc, e);
                }
            }
        }
        if oid == types::oids::BPCHAR && ty.names.len() == 1 {
            typmod = if ty.modifiers.is_empty() { -1 } else { typmod };
        }
        Ok(TypeRef { oid, typmod })
    }
}
