//! GRANT, REVOKE and ALTER DEFAULT PRIVILEGES.

use super::UtilityStatement as U;
use super::parser::Parser;
use super::utility::{Grant, GrantObject, GrantRole, OptionValue, UtilityOption, UtilityStatement};
use base::{Result, err};

impl Parser<'_> {
    /// `SELECT (a, b), INSERT` or names of roles: decided by what follows.
    fn privileges(&mut self) -> Result<Option<Vec<(String, Vec<String>)>>> {
        if self.accept("all") {
            self.accept("privileges");
            if self.is_op("(") {
                let columns = self.paren_list(Self::name)?;
                return Ok(Some(vec![("all".into(), columns)]));
            }
            return Ok(None);
        }
        Ok(Some(self.list(|p| {
            let mut word = p.label()?;
            if word == "alter" && p.accept("system") {
                word.push_str(" system");
            }
            let columns = if p.is_op("(") { p.paren_list(Self::name)? } else { Vec::new() };
            Ok((word, columns))
        })?))
    }

    fn grant_object(&mut self) -> Result<GrantObject> {
        if self.accept("all") {
            let what = self.label()?;
            self.expect_all(&["in", "schema"])?;
            let schemas = self.list(Self::name)?;
            return Ok(match what.as_str() {
                "tables" => GrantObject::AllTablesInSchema(schemas),
                "sequences" => GrantObject::AllSequencesInSchema(schemas),
                _ => GrantObject::AllFunctionsInSchema(schemas),
            });
        }
        if self.accept("sequence") {
            return Ok(GrantObject::Sequences(self.list(Self::object_name)?));
        }
        if self.accept("database") {
            return Ok(GrantObject::Databases(self.list(Self::name)?));
        }
        if self.accept("schema") {
            return Ok(GrantObject::Schemas(self.list(Self::name)?));
        }
        if self.is_any(&["function", "procedure", "routine"]) {
            self.skip(1);
            let list = self.list(|p| {
                let name = p.any_object_name()?;
                let mut types = Vec::new();
                if p.accept_op("(") {
                    if !p.is_op(")") {
                        types = p.list(|p| {
                            if p.is_any(&["in", "out", "inout", "variadic"]) {
                                p.skip(1);
                            }
                            let at = p.at;
                            let first = p.type_name();
                            if first.is_ok() && (p.is_op(",") || p.is_op(")")) {
                                return first;
                            }
                            p.at = at;
                            p.label()?;
                            p.type_name()
                        })?;
                    }
                    p.expect_op(")")?;
                }
                Ok((name, types))
            })?;
            return Ok(GrantObject::Functions(list));
        }
        if self.is_any(&["type", "domain"]) {
            self.skip(1);
            return Ok(GrantObject::Types(self.list(Self::any_object_name)?));
        }
        if self.accept("language") {
            return Ok(GrantObject::Languages(self.list(Self::name)?));
        }
        if self.accept("tablespace") {
            return Ok(GrantObject::Tablespaces(self.list(Self::name)?));
        }
        if self.accept("parameter") {
            return Ok(GrantObject::Parameters(self.list(Self::dotted_setting)?));
        }
        if self.is_any(&["foreign", "large"]) {
            let mut what = String::new();
            while !self.at_end() && !self.is("to") && !self.is("from") {
                what.push_str(&self.next().text);
                what.push(' ');
            }
            return Ok(GrantObject::Other(what.trim_end().to_owned()));
        }
        self.accept("table");
        Ok(GrantObject::Tables(self.list(Self::object_name)?))
    }

    pub(super) fn grantees(&mut self) -> Result<Vec<super::utility::RoleName>> {
        self.list(|p| {
            p.accept("group");
            p.role_name()
        })
    }

    fn granted_by(&mut self) -> Result<Option<super::utility::RoleName>> {
        if self.accept_all(&["granted", "by"]) {
            return self.role_name().map(Some);
        }
        Ok(None)
    }

    fn role_names_of(privileges: Option<Vec<(String, Vec<String>)>>) -> Vec<String> {
        privileges.unwrap_or_default().into_iter().map(|(n, _)| n).collect()
    }

    pub fn grant(&mut self) -> Result<UtilityStatement> {
        self.expect("grant")?;
        let privileges = self.privileges()?;
        if self.accept("to") {
            let members = self.grantees()?;
            let mut options = Vec::new();
            if self.accept("with") {
                options = self.list(|p| {
                    let loc = p.loc();
                    let name = p.label()?;
                    if !matches!(name.as_str(), "admin" | "inherit" | "set") {
                        let e = err!(SYNTAX_ERROR, "unrecognized role option \"{name}\"");
                        return p.error_here(e, loc);
                    }
                    let value = if p.accept("option") {
                        None
                    } else if p.is_any(&["true", "false"]) {
                        Some(OptionValue::Word(p.next().text.into_owned()))
                    } else {
                        return Err(p.unexpected());
                    };
                    Ok(UtilityOption { name, value, loc })
                })?;
            }
            let granted_by = self.granted_by()?;
            return Ok(U::GrantRole(Box::new(GrantRole {
                granted_by,
                of_group: false,
                grant: true,
                roles: Self::role_names_of(privileges),
                members,
                options,
                option_for: None,
                cascade: false,
            })));
        }
        self.expect("on")?;
        let object = self.grant_object()?;
        self.expect("to")?;
        let grantees = self.grantees()?;
        let grant_option = self.accept_all(&["with", "grant", "option"]);
        let granted_by = self.granted_by()?;
        Ok(U::Grant(Box::new(Grant {
            granted_by,
            grant: true,
            privileges,
            object,
            grantees,
            grant_option,
            cascade: false,
        })))
    }

    pub fn revoke(&mut self) -> Result<UtilityStatement> {
        self.expect("revoke")?;
        let grant_option = self.accept_all(&["grant", "option", "for"]);
        let mut option_for = None;
        for word in ["admin", "inherit", "set"] {
            if self.accept_all(&[word, "option", "for"]) {
                option_for = Some(word.to_owned());
            }
        }
        let privileges = self.privileges()?;
        if self.accept("from") {
            let members = self.grantees()?;
            let granted_by = self.granted_by()?;
            return Ok(U::GrantRole(Box::new(GrantRole {
                granted_by,
                of_group: false,
                grant: false,
                roles: Self::role_names_of(privileges),
                members,
                options: Vec::new(),
                option_for,
                cascade: self.cascade(),
            })));
        }
        self.expect("on")?;
        let object = self.grant_object()?;
        self.expect("from")?;
        let grantees = self.grantees()?;
        let granted_by = self.granted_by()?;
        let cascade = self.cascade();
        Ok(U::Grant(Box::new(Grant {
            granted_by,
            grant: false,
            privileges,
            object,
            grantees,
            grant_option,
            cascade,
        })))
    }

    /// The kind of new objects that is spoken of.
    fn default_object(&mut self) -> Result<String> {
        if self.accept_all(&["large", "objects"]) {
            return Ok("large objects".to_owned());
        }
        if self.is_any(&["tables", "sequences", "functions", "routines", "types", "schemas"]) {
            return self.label();
        }
        Err(self.unexpected())
    }

    pub(super) fn alter_default_privileges(&mut self) -> Result<UtilityStatement> {
        let mut roles = Vec::new();
        let mut schemas = Vec::new();
        loop {
            if self.accept_all(&["in", "schema"]) {
                schemas = self.list(Self::name)?;
            } else if self.accept("for") {
                if !self.accept("role") {
                    self.expect("user")?;
                }
                roles = self.list(Self::role_name)?;
            } else {
                break;
            }
        }
        let is_grant = self.accept("grant");
        let mut grant_option = false;
        if !is_grant {
            self.expect("revoke")?;
            grant_option = self.accept_all(&["grant", "option", "for"]);
        }
        let privileges = self.privileges()?;
        self.expect("on")?;
        let object = GrantObject::Default(self.default_object()?);
        self.expect(if is_grant { "to" } else { "from" })?;
        let grantees = self.grantees()?;
        if is_grant {
            grant_option = self.accept_all(&["with", "grant", "option"]);
        }
        let cascade = !is_grant && self.cascade();
        let (grant, granted_by) = (is_grant, None);
        let grant =
            Grant { grant, privileges, object, grantees, grant_option, cascade, granted_by };
        Ok(U::AlterDefaultPrivileges { roles, schemas, grant: Box::new(grant) })
    }
}
