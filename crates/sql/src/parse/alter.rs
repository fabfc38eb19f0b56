//! ALTER, DROP, COMMENT.

use super::UtilityStatement as U;
use super::ast::ObjectName;
use super::parser::Parser;
use super::utility::{
    AlterTable, AlterTableAction as A, Comment, Drop, GrantRole, ObjectKind, Rename,
    SequenceOption, UtilityStatement,
};
use base::Result;

impl Parser<'_> {
    pub fn alter(&mut self) -> Result<UtilityStatement> {
        self.expect("alter")?;
        if self.accept("system") {
            return self.alter_system();
        }
        if self.accept("database") {
            return self.alter_database();
        }
        if self.is_any(&["role", "user", "group"]) && !self.is_at(1, "mapping") {
            self.skip(1);
            return self.alter_role();
        }
        if self.accept_all(&["default", "privileges"]) {
            return self.alter_default_privileges();
        }
        if self.accept("extension") {
            return self.alter_extension();
        }
        if self.accept("schema") {
            let name = ObjectName::bare(self.name()?);
            if self.accept("rename") {
                self.expect("to")?;
                return self.renamed(ObjectKind::Schema, false, name, None);
            }
            self.expect_all(&["owner", "to"])?;
            let owner = self.role_name()?;
            return Ok(U::OwnerTo { kind: ObjectKind::Schema, if_exists: false, name, owner });
        }
        if self.accept("type") {
            return self.alter_type();
        }
        if self.accept("domain") {
            return self.alter_domain();
        }
        if self.accept("statistics") {
            return self.alter_statistics();
        }
        let kind = if self.accept("table") {
            ObjectKind::Table
        } else if self.accept("index") {
            ObjectKind::Index
        } else if self.accept("sequence") {
            ObjectKind::Sequence
        } else if self.accept("view") {
            ObjectKind::View
        } else if self.accept_all(&["materialized", "view"]) {
            ObjectKind::MaterializedView
        } else {
            let t = self.peek();
            let known = matches!(
                &*t.text,
                "function"
                    | "procedure"
                    | "routine"
                    | "trigger"
                    | "aggregate"
                    | "operator"
                    | "rule"
                    | "policy"
                    | "collation"
                    | "conversion"
                    | "language"
                    | "publication"
                    | "subscription"
                    | "server"
                    | "foreign"
                    | "tablespace"
                    | "text"
                    | "event"
                    | "extension"
                    | "large"
                    | "user"
                    | "procedural"
                    | "group"
            );
            if !known {
                return Err(self.unexpected());
            }
            let what = format!("ALTER {}", t.text.to_ascii_uppercase());
            return self.unsupported(&what);
        };
        if self.accept_all(&["all", "in", "tablespace"]) {
            return self.unsupported("ALTER ... ALL IN TABLESPACE");
        }
        let if_exists = self.if_exists();
        let only = self.is("only");
        let (name, _) = self.only_name()?;
        self.alter_relation(kind, if_exists, only, name)
    }

    pub(super) fn renamed(
        &mut self,
        kind: ObjectKind,
        if_exists: bool,
        name: ObjectName,
        part: Option<String>,
    ) -> Result<UtilityStatement> {
        self.part_renamed(kind, kind, if_exists, name, part)
    }

    pub(super) fn part_renamed(
        &mut self,
        kind: ObjectKind,
        of: ObjectKind,
        if_exists: bool,
        name: ObjectName,
        part: Option<String>,
    ) -> Result<UtilityStatement> {
        let new_name = self.name()?;
        Ok(U::Rename(Box::new(Rename { kind, of, if_exists, name, part, new_name })))
    }

    fn alter_relation(
        &mut self,
        kind: ObjectKind,
        if_exists: bool,
        only: bool,
        name: ObjectName,
    ) -> Result<UtilityStatement> {
        if self.accept("rename") {
            if self.accept("to") {
                return self.renamed(kind, if_exists, name, None);
            }
            if matches!(kind, ObjectKind::Index | ObjectKind::Sequence) {
                return Err(self.unexpected());
            }
            if kind == ObjectKind::Table && self.accept("constraint") {
                let part = Some(self.name()?);
                self.expect("to")?;
                return self.part_renamed(ObjectKind::Constraint, kind, if_exists, name, part);
            }
            self.accept("column");
            let part = Some(self.name()?);
            self.expect("to")?;
            return self.part_renamed(ObjectKind::Column, kind, if_exists, name, part);
        }
        // An index goes with its table.
        if kind != ObjectKind::Index && self.accept_all(&["set", "schema"]) {
            let schema = self.name()?;
            return Ok(U::SetSchema { kind, if_exists, name, schema });
        }
        if kind == ObjectKind::Sequence && !self.is_any(&["owner", "set"]) {
            let options = self.sequence_options()?;
            if options.is_empty() {
                return Err(self.unexpected());
            }
            return Ok(U::AlterSequence { if_exists, name, options });
        }
        if kind == ObjectKind::Index && self.is("no") || self.is("depends") {
            return self.unsupported("ALTER INDEX ... DEPENDS ON EXTENSION");
        }
        let actions = self.list(Self::alter_action)?;
        if let [A::OwnerTo(owner)] = actions.as_slice() {
            let owner = owner.clone();
            return Ok(U::OwnerTo { kind, if_exists, name, owner });
        }
        Ok(U::AlterTable(Box::new(AlterTable { kind, if_exists, only, name, actions })))
    }

    fn alter_action(&mut self) -> Result<A> {
        if self.accept("add") {
            if self.is_constraint_ahead() {
                return Ok(A::AddConstraint(self.table_constraint()?));
            }
            self.accept("column");
            let if_not_exists = self.if_not_exists();
            return Ok(A::AddColumn { if_not_exists, column: self.column_def()? });
        }
        if self.accept("drop") {
            if self.accept("constraint") {
                let if_exists = self.if_exists();
                let name = self.name()?;
                return Ok(A::DropConstraint { if_exists, name, cascade: self.cascade() });
            }
            self.accept("column");
            let if_exists = self.if_exists();
            let column = self.name()?;
            return Ok(A::DropColumn { if_exists, column, cascade: self.cascade() });
        }
        if self.accept("alter") {
            if self.accept("constraint") {
                let name = self.name()?;
                let said = self.altered_timing()?;
                let (timing, inherit, enforced) = (said.timing, said.inherit, said.enforced);
                return Ok(A::AlterConstraint { name, timing, inherit, enforced });
            }
            self.accept("column");
            return self.alter_column();
        }
        if self.accept("validate") {
            self.expect("constraint")?;
            return Ok(A::ValidateConstraint(self.name()?));
        }
        if self.accept("owner") {
            self.expect("to")?;
            return Ok(A::OwnerTo(self.role_name()?));
        }
        if self.accept("reset") {
            return Ok(A::ResetOptions(self.storage_options()?));
        }
        if self.accept("set") {
            return self.alter_set();
        }
        if self.accept("cluster") {
            self.expect("on")?;
            return Ok(A::ClusterOn(self.name()?));
        }
        if self.accept("inherit") {
            return Ok(A::Inherit(self.object_name()?));
        }
        if self.accept_all(&["no", "inherit"]) {
            return Ok(A::NoInherit(self.object_name()?));
        }
        if self.accept_all(&["replica", "identity"]) {
            if self.accept_all(&["using", "index"]) {
                return Ok(A::ReplicaIdentityUsing(self.name()?));
            }
            return Ok(A::ReplicaIdentity(self.label()?));
        }
        if self.accept_all(&["attach", "partition"]) {
            let name = self.object_name()?;
            let bound = if self.at_end() {
                super::utility::PartitionBound::Default
            } else {
                self.partition_bound()?
            };
            return Ok(A::AttachPartition { name, bound });
        }
        if self.accept_all(&["detach", "partition"]) {
            let name = self.object_name()?;
            let concurrently = self.accept("concurrently");
            self.accept("finalize");
            return Ok(A::DetachPartition { name, concurrently });
        }
        if self.is_any(&["enable", "disable", "force"]) || (self.is("no") && self.is_at(1, "force"))
        {
            let enable = self.is("enable") || self.is("force");
            if self.is_any(&["enable", "disable"]) {
                self.skip(1);
            }
            let mut what = String::new();
            while !self.at_end() && !self.is_op(",") {
                if !what.is_empty() {
                    what.push(' ');
                }
                what.push_str(&self.next().text);
            }
            return Ok(A::EnableDisable { enable, what });
        }
        Err(self.unexpected())
    }

    fn alter_set(&mut self) -> Result<A> {
        if self.is_op("(") {
            return Ok(A::SetOptions(self.storage_options()?));
        }
        if self.accept("logged") {
            return Ok(A::SetLogged(true));
        }
        if self.accept("unlogged") {
            return Ok(A::SetLogged(false));
        }
        if self.accept("tablespace") {
            let name = self.name()?;
            self.accept("nowait");
            return Ok(A::SetTablespace(name));
        }
        if self.accept_all(&["access", "method"]) {
            return Ok(A::SetAccessMethod(self.label()?));
        }
        if self.accept_all(&["without", "cluster"]) {
            return Ok(A::SetWithoutCluster);
        }
        if self.accept_all(&["without", "oids"]) {
            return Ok(A::SetWithoutOids);
        }
        Err(self.unexpected())
    }

    fn alter_column(&mut self) -> Result<A> {
        // an index's column is given by number
        let column = if self.peek().kind == super::lexer::Kind::Number {
            self.next().text.into_owned()
        } else {
            self.name()?
        };
        if self.accept("type") || self.accept_all(&["set", "data", "type"]) {
            let ty = self.type_name()?;
            let collation =
                if self.accept("collate") { Some(self.collation_name()?) } else { None };
            let using = if self.accept("using") { Some(self.expr()?) } else { None };
            return Ok(A::AlterType { column, ty, collation, using });
        }
        if self.accept("drop") {
            if self.accept("default") {
                return Ok(A::SetDefault { column, default: None });
            }
            if self.accept_all(&["not", "null"]) {
                return Ok(A::DropNotNull { column });
            }
            if self.accept("expression") {
                let if_exists = self.if_exists();
                return Ok(A::DropExpression { column, if_exists });
            }
            self.expect("identity")?;
            let if_exists = self.if_exists();
            return Ok(A::DropIdentity { column, if_exists });
        }
        if self.accept("add") {
            self.expect("generated")?;
            let always = self.accept("always");
            if !always {
                self.expect_all(&["by", "default"])?;
            }
            self.expect_all(&["as", "identity"])?;
            let options = self.paren_sequence_options()?;
            return Ok(A::AddIdentity { column, always, options });
        }
        if self.accept("reset") {
            let options = self.storage_options()?.into_iter().map(|o| o.name).collect();
            return Ok(A::ResetColumnOptions { column, options });
        }
        if self.is("restart") {
            let options = self.sequence_options()?;
            return Ok(A::SetIdentity { column, always: None, options });
        }
        self.expect("set")?;
        if self.accept("default") {
            return Ok(A::SetDefault { column, default: Some(self.expr()?) });
        }
        if self.accept_all(&["not", "null"]) {
            return Ok(A::SetNotNull { column });
        }
        if self.accept("expression") {
            self.expect("as")?;
            self.expect_op("(")?;
            let expression = self.expr()?;
            self.expect_op(")")?;
            return Ok(A::SetExpression { column, expression });
        }
        if self.accept("statistics") {
            let target = if self.accept("default") {
                None
            } else {
                i32::try_from(self.signed_integer()?).ok()
            };
            return Ok(A::SetStatistics { column, target });
        }
        if self.accept("storage") {
            let storage = self.label()?.to_ascii_lowercase();
            return Ok(A::SetStorage { column, storage });
        }
        if self.accept("compression") {
            let compression = self.label()?.to_ascii_lowercase();
            return Ok(A::SetCompression { column, compression });
        }
        if self.is_op("(") {
            return Ok(A::SetColumnOptions { column, options: self.storage_options()? });
        }
        // SET GENERATED …, SET sequence option, repeated
        let mut always = None;
        let mut options: Vec<SequenceOption> = Vec::new();
        loop {
            if self.accept("generated") {
                always = Some(self.accept("always"));
                if always == Some(false) {
                    self.expect_all(&["by", "default"])?;
                }
            } else {
                let more = self.sequence_options()?;
                if more.is_empty() {
                    return Err(self.unexpected());
                }
                options.extend(more);
            }
            if self.is("restart") {
                options.extend(self.sequence_options()?);
            }
            if !self.accept("set") {
                return Ok(A::SetIdentity { column, always, options });
            }
        }
    }

    fn alter_database(&mut self) -> Result<UtilityStatement> {
        let name = self.name()?;
        if self.is("set") && self.is_at(1, "tablespace") {
            return self.unsupported("ALTER DATABASE SET TABLESPACE");
        }
        if self.is_any(&["set", "reset"]) {
            let setting = self.set_or_reset()?;
            return Ok(U::AlterDatabaseSet { database: name, setting });
        }
        if self.accept_all(&["rename", "to"]) {
            return self.renamed(ObjectKind::Database, false, ObjectName::bare(name), None);
        }
        if self.accept_all(&["owner", "to"]) {
            let owner = self.role_name()?;
            let name = ObjectName::bare(name);
            return Ok(U::OwnerTo { kind: ObjectKind::Database, if_exists: false, name, owner });
        }
        self.accept("with");
        let options = self.word_options()?;
        Ok(U::AlterDatabase { name, options })
    }

    fn alter_role(&mut self) -> Result<UtilityStatement> {
        let role = if self.accept("all") { None } else { Some(self.role_name()?) };
        let mut database = None;
        if self.accept_all(&["in", "database"]) {
            database = Some(self.name()?);
        }
        if self.is_any(&["set", "reset"]) {
            let setting = self.set_or_reset()?;
            return Ok(U::AlterRoleSet { role, database, setting });
        }
        let Some(role) = role else { return Err(self.unexpected()) };
        if self.accept_all(&["rename", "to"]) {
            let super::utility::RoleName::Name(name) = role else {
                return Err(self.unexpected());
            };
            return self.renamed(ObjectKind::Role, false, ObjectName::bare(name), None);
        }
        if self.is_any(&["add", "drop"]) && self.is_at(1, "user") {
            let grant = self.accept("add");
            if !grant {
                self.expect("drop")?;
            }
            self.expect("user")?;
            let super::utility::RoleName::Name(group) = role else {
                return Err(self.unexpected());
            };
            return Ok(U::GrantRole(Box::new(GrantRole {
                grant,
                roles: vec![group],
                members: self.grantees()?,
                options: Vec::new(),
                option_for: None,
                cascade: false,
                granted_by: None,
                of_group: true,
            })));
        }
        self.accept("with");
        let options = self.role_options(true)?;
        Ok(U::AlterRole { role, options })
    }

    /// `KIND` of DROP and COMMENT. None: not an object's name.
    fn object_kind(&mut self) -> Option<ObjectKind> {
        let two = [
            (["materialized", "view"], ObjectKind::MaterializedView),
            (["foreign", "table"], ObjectKind::ForeignTable),
            (["access", "method"], ObjectKind::Other),
            (["event", "trigger"], ObjectKind::Other),
            (["text", "search"], ObjectKind::Other),
            (["user", "mapping"], ObjectKind::Other),
            (["large", "object"], ObjectKind::Other),
            (["operator", "class"], ObjectKind::Other),
            (["operator", "family"], ObjectKind::Other),
            (["foreign", "data"], ObjectKind::Other),
            (["procedural", "language"], ObjectKind::Language),
        ];
        for (words, kind) in two {
            if self.accept_all(&words) {
                return Some(kind);
            }
        }
        let one = [
            ("table", ObjectKind::Table),
            ("index", ObjectKind::Index),
            ("view", ObjectKind::View),
            ("sequence", ObjectKind::Sequence),
            ("schema", ObjectKind::Schema),
            ("database", ObjectKind::Database),
            ("role", ObjectKind::Role),
            ("user", ObjectKind::Role),
            ("group", ObjectKind::Role),
            ("column", ObjectKind::Column),
            ("constraint", ObjectKind::Constraint),
            ("type", ObjectKind::Type),
            ("domain", ObjectKind::Domain),
            ("function", ObjectKind::Function),
            ("routine", ObjectKind::Function),
            ("procedure", ObjectKind::Procedure),
            ("aggregate", ObjectKind::Aggregate),
            ("operator", ObjectKind::Operator),
            ("extension", ObjectKind::Extension),
            ("trigger", ObjectKind::Trigger),
            ("rule", ObjectKind::Rule),
            ("policy", ObjectKind::Policy),
            ("collation", ObjectKind::Collation),
            ("cast", ObjectKind::Cast),
            ("language", ObjectKind::Language),
            ("tablespace", ObjectKind::Tablespace),
            ("publication", ObjectKind::Publication),
            ("subscription", ObjectKind::Subscription),
            ("statistics", ObjectKind::Statistics),
            ("conversion", ObjectKind::Other),
            ("server", ObjectKind::Other),
            ("transform", ObjectKind::Other),
        ];
        one.into_iter().find(|(w, _)| self.accept(w)).map(|(_, k)| k)
    }

    pub fn drop_statement(&mut self) -> Result<UtilityStatement> {
        self.expect("drop")?;
        if self.accept_all(&["owned", "by"]) {
            let roles = self.list(Self::role_name)?;
            return Ok(U::DropOwned { roles, cascade: self.cascade() });
        }
        let Some(kind) = self.object_kind() else { return Err(self.unexpected()) };
        match kind {
            ObjectKind::Other | ObjectKind::Cast | ObjectKind::Operator => {
                return self.unsupported("DROP of this kind of object");
            }
            ObjectKind::Role => {
                let if_exists = self.if_exists();
                let roles = self.list(Self::role_name)?;
                return Ok(U::DropRole { if_exists, roles });
            }
            ObjectKind::Database => {
                let if_exists = self.if_exists();
                let name = self.name()?;
                self.accept("with");
                let mut force = false;
                if self.is_op("(") {
                    force = self.utility_options()?.iter().any(|o| o.name == "force");
                }
                return Ok(U::DropDatabase { if_exists, name, force });
            }
            _ => {}
        }
        let concurrently = kind == ObjectKind::Index && self.accept("concurrently");
        let if_exists = self.if_exists();
        let names = self.list(|p| {
            let n = p.any_object_name()?;
            if p.is_op("(") {
                p.skip_parens()?;
            }
            Ok(n)
        })?;
        let on = if self.accept("on") { Some(self.object_name()?) } else { None };
        let cascade = self.cascade();
        Ok(U::Drop(Box::new(Drop { kind, if_exists, concurrently, names, cascade, on })))
    }

    fn skip_parens(&mut self) -> Result<()> {
        self.expect_op("(")?;
        let mut depth = 1;
        while depth > 0 {
            if self.at_end() {
                return Err(self.unexpected());
            }
            if self.is_op("(") {
                depth += 1;
            } else if self.is_op(")") {
                depth -= 1;
            }
            self.skip(1);
        }
        Ok(())
    }

    pub fn comment(&mut self) -> Result<UtilityStatement> {
        self.expect_all(&["comment", "on"])?;
        let Some(mut kind) = self.object_kind() else { return Err(self.unexpected()) };
        let mut part = None;
        let name = match kind {
            ObjectKind::Other | ObjectKind::Cast | ObjectKind::Operator => {
                return self.unsupported("COMMENT on this kind of object");
            }
            ObjectKind::Column => {
                let loc = self.loc();
                let mut parts = self.dotted()?;
                part = parts.pop();
                if parts.is_empty() {
                    let e = base::err!(SYNTAX_ERROR, "column name must be qualified");
                    return self.error_here(e, loc);
                }
                self.object_name_of(parts, loc)?
            }
            ObjectKind::Constraint
            | ObjectKind::Trigger
            | ObjectKind::Rule
            | ObjectKind::Policy => {
                part = Some(self.name()?);
                self.expect("on")?;
                if self.accept("domain") {
                    kind = ObjectKind::Domain;
                }
                self.any_object_name()?
            }
            _ => {
                let n = self.any_object_name()?;
                if self.is_op("(") {
                    self.skip_parens()?;
                }
                n
            }
        };
        self.expect("is")?;
        let text = if self.accept("null") { None } else { Some(self.string()?) };
        Ok(U::Comment(Box::new(Comment { kind, name, part, text })))
    }

    /// After ALTER EXTENSION.
    fn alter_extension(&mut self) -> Result<UtilityStatement> {
        let name = self.name()?;
        if self.is_any(&["add", "drop", "set"]) {
            return self.unsupported("ALTER EXTENSION");
        }
        self.expect("update")?;
        let mut version = None;
        while self.is("to") {
            let loc = self.loc();
            self.skip(1);
            let to = if self.peek().kind == super::lexer::Kind::String {
                self.next().text.into_owned()
            } else {
                self.non_reserved()?
            };
            if version.replace(to).is_some() {
                return self
                    .error_here(base::err!(SYNTAX_ERROR, "conflicting or redundant options"), loc);
            }
        }
        Ok(U::UpdateExtension { name, version })
    }
}
