//! CREATE TYPE and ALTER TYPE: of enums and composite types. CREATE DOMAIN and ALTER DOMAIN.

use super::parser::Parser;
use super::utility::{
    AlterDomain, AlterDomainAction, AlterEnum, AlterEnumAction, AlterTable, AlterTableAction as A,
    ColumnConstraintKind, ColumnDef, CreateDomain, ObjectKind, UtilityStatement as U,
};
use base::Result;

impl Parser<'_> {
    /// From TYPE on.
    pub fn create_type(&mut self) -> Result<U> {
        self.expect("type")?;
        let name = self.any_object_name()?;
        if self.is("as") && self.is_op_at(1, "(") {
            self.skip(2);
            let attributes = if self.is_op(")") { Vec::new() } else { self.list(Self::attribute)? };
            self.expect_op(")")?;
            return Ok(U::CreateComposite { name, attributes });
        }
        if !self.accept_all(&["as", "enum"]) {
            return self.unsupported("CREATE TYPE other than AS ENUM or AS (...)");
        }
        self.expect_op("(")?;
        let labels = if self.is_op(")") { Vec::new() } else { self.list(Self::string)? };
        self.expect_op(")")?;
        Ok(U::CreateEnum { name, labels })
    }

    /// An attribute of a composite type.
    fn attribute(&mut self) -> Result<ColumnDef> {
        let loc = self.loc();
        let name = self.name()?;
        let ty = self.type_name()?;
        let collation = if self.accept("collate") { Some(self.collation_name()?) } else { None };
        let (storage, compression, constraints) = (None, None, Vec::new());
        Ok(ColumnDef { name, ty, collation, storage, compression, constraints, loc })
    }

    /// What is done to an attribute. CASCADE would reach tables OF the type, and only DROP reaches more.
    fn attribute_action(&mut self) -> Result<A> {
        if self.accept_all(&["add", "attribute"]) {
            let column = self.attribute()?;
            self.cascade();
            return Ok(A::AddColumn { if_not_exists: false, column });
        }
        if self.accept_all(&["drop", "attribute"]) {
            let if_exists = self.if_exists();
            let column = self.name()?;
            return Ok(A::DropColumn { if_exists, column, cascade: self.cascade() });
        }
        self.expect_all(&["alter", "attribute"])?;
        let column = self.name()?;
        self.accept_all(&["set", "data"]);
        self.expect("type")?;
        let ty = self.type_name()?;
        let collation = if self.accept("collate") { Some(self.collation_name()?) } else { None };
        self.cascade();
        Ok(A::AlterType { column, ty, collation, using: None })
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
        if self.is_any(&["add", "drop", "alter"]) && self.is_at(1, "attribute") {
            let actions = self.list(Self::attribute_action)?;
            let (if_exists, only) = (false, false);
            let altered = AlterTable { kind, if_exists, only, name, actions };
            return Ok(U::AlterTable(Box::new(altered)));
        }
        if self.accept_all(&["rename", "attribute"]) {
            let part = Some(self.name()?);
            self.expect("to")?;
            let renamed = self.part_renamed(ObjectKind::Column, kind, false, name, part)?;
            self.cascade();
            return Ok(renamed);
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

/// What stands in a domain's definition: as in a column's, but for what only columns have.
impl Parser<'_> {
    /// From DOMAIN on.
    pub fn create_domain(&mut self) -> Result<U> {
        self.expect("domain")?;
        let name = self.any_object_name()?;
        self.accept("as");
        let loc = self.loc();
        let ty = self.type_name()?;
        let mut column = ColumnDef {
            name: name.name.clone(),
            ty,
            collation: None,
            storage: None,
            compression: None,
            constraints: Vec::new(),
            loc,
        };
        self.column_constraints(&mut column)?;
        Ok(U::CreateDomain(Box::new(CreateDomain { name, column })))
    }

    /// `[CONSTRAINT name] CHECK (…) | NOT NULL [NOT VALID]`
    fn domain_constraint(&mut self) -> Result<(Option<String>, ColumnConstraintKind, bool)> {
        let name = if self.accept("constraint") { Some(self.name()?) } else { None };
        let kind = if self.accept_all(&["not", "null"]) {
            ColumnConstraintKind::NotNull
        } else {
            self.expect("check")?;
            self.expect_op("(")?;
            let condition = self.expr()?;
            self.expect_op(")")?;
            ColumnConstraintKind::Check(condition)
        };
        let not_valid = self.accept_all(&["not", "valid"]);
        Ok((name, kind, not_valid))
    }

    /// After ALTER DOMAIN.
    pub fn alter_domain(&mut self) -> Result<U> {
        let kind = ObjectKind::Domain;
        let name = self.any_object_name()?;
        let action = if self.accept_all(&["set", "default"]) {
            AlterDomainAction::Default(Some(self.expr()?))
        } else if self.accept_all(&["drop", "default"]) {
            AlterDomainAction::Default(None)
        } else if self.accept_all(&["set", "not", "null"]) {
            AlterDomainAction::NotNull(true)
        } else if self.accept_all(&["drop", "not", "null"]) {
            AlterDomainAction::NotNull(false)
        } else if self.accept("add") {
            let (name, kind, not_valid) = self.domain_constraint()?;
            AlterDomainAction::Add { name, kind, not_valid }
        } else if self.accept_all(&["drop", "constraint"]) {
            let if_exists = self.if_exists();
            let name = self.name()?;
            AlterDomainAction::Drop { if_exists, name, cascade: self.cascade() }
        } else if self.accept_all(&["validate", "constraint"]) {
            AlterDomainAction::Validate(self.name()?)
        } else if self.accept_all(&["rename", "constraint"]) {
            let part = self.name()?;
            self.expect("to")?;
            return self.renamed(kind, false, name, Some(part));
        } else if self.accept_all(&["rename", "to"]) {
            return self.renamed(kind, false, name, None);
        } else if self.accept_all(&["set", "schema"]) {
            return Ok(U::SetSchema { kind, if_exists: false, name, schema: self.name()? });
        } else if self.accept_all(&["owner", "to"]) {
            let owner = self.role_name()?;
            return Ok(U::OwnerTo { kind, if_exists: false, name, owner });
        } else {
            return Err(self.unexpected());
        };
        Ok(U::AlterDomain(Box::new(AlterDomain { name, action })))
    }
}
