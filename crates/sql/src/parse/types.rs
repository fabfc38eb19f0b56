//! CREATE TYPE and ALTER TYPE: of enums.

use super::parser::Parser;
use super::utility::{AlterEnum, AlterEnumAction, ObjectKind, UtilityStatement as U};
use base::Result;

impl Parser<'_> {
    /// From TYPE on.
    pub fn create_type(&mut self) -> Result<U> {
        self.expect("type")?;
        let name = self.any_object_name()?;
        if !self.accept_all(&["as", "enum"]) {
            return self.unsupported("CREATE TYPE other than AS ENUM");
        }
        self.expect_op("(")?;
        let labels = if self.is_op(")") { Vec::new() } else { self.list(Self::string)? };
        self.expect_op(")")?;
        Ok(U::CreateEnum { name, labels })
    }

    /// After ALTER TYPE.
    pub fn alter_type(&mut self) -> Result<U> {
        let kind = ObjectKind::Type;
        let name = self.any_object_name()?;
        if self.accept_all(&["add", "value"]) {
            let if_not_exists = self.if_not_exists();
            let label = self.string()?;
            let neighbour = if self.accept("before") {
                Some((true, self.string()?))
            } else if self.accept("after") {
                Some((false, self.string()?))
            } else {
                None
            };
            let action = AlterEnumAction::AddValue { if_not_exists, label, neighbour };
            return Ok(U::AlterEnum(Box::new(AlterEnum { name, action })));
        }
        if self.accept_all(&["rename", "value"]) {
            let old = self.string()?;
            self.expect("to")?;
            let action = AlterEnumAction::RenameValue { old, new: self.string()? };
            return Ok(U::AlterEnum(Box::new(AlterEnum { name, action })));
        }
        if self.accept_all(&["rename", "to"]) {
            return self.renamed(kind, false, name, None);
        }
        if self.accept_all(&["set", "schema"]) {
            return Ok(U::SetSchema { kind, if_exists: false, name, schema: self.name()? });
        }
        if self.accept_all(&["owner", "to"]) {
            let owner = self.role_name()?;
            return Ok(U::OwnerTo { kind, if_exists: false, name, owner });
        }
        self.unsupported("ALTER TYPE of this kind")
    }
}
