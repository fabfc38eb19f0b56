//! CREATE TABLE: columns, constraints, partitions, storage.

use super::UtilityStatement as U;
use super::ast::QueryStatement;
use super::parser::Parser;
use super::utility::{
    ColumnConstraint, ColumnConstraintKind as C, ColumnDef, CreateTable, CreateTableAs, Generation,
    OnCommit, PartitionBound, PartitionBy, PartitionOf, References, ReferentialAction,
    RelationPersistence, SequenceOption as S, TableConstraint, TableConstraintKind as K,
    TableElement, UniqueOptions, UtilityOption, UtilityStatement,
};
use base::{Result, err};

impl Parser<'_> {
    pub(super) fn create_table(
        &mut self,
        persistence: RelationPersistence,
    ) -> Result<UtilityStatement> {
        let at = self.at;
        let if_not_exists = self.if_not_exists();
        let name = self.object_name()?;
        // CREATE TABLE name [(columns)] … AS
        if self.is("as") || self.is_any(&["using", "with", "on", "tablespace"]) || self.as_ahead() {
            self.at = at;
            return self.create_as(persistence, false);
        }
        let mut t = CreateTable {
            name,
            persistence,
            if_not_exists,
            elements: Vec::new(),
            inherits: Vec::new(),
            partition_by: None,
            partition_of: None,
            access_method: None,
            options: Vec::new(),
            on_commit: OnCommit::PreserveRows,
            tablespace: None,
        };
        if self.accept_all(&["partition", "of"]) {
            let parent = self.object_name()?;
            if self.is_op("(") {
                t.elements = self.paren_list(Self::partition_element)?;
            }
            let bound = self.partition_bound()?;
            t.partition_of = Some(PartitionOf { parent, bound });
        } else if self.is("of") {
            return self.unsupported("CREATE TABLE OF");
        } else {
            self.expect_op("(")?;
            if !self.is_op(")") {
                t.elements = self.list(Self::table_element)?;
            }
            self.expect_op(")")?;
        }
        if self.accept("inherits") {
            t.inherits = self.paren_list(Self::object_name)?;
        }
        if self.accept_all(&["partition", "by"]) {
            let strategy = self.label()?.to_ascii_lowercase();
            let elements = self.paren_list(Self::index_element)?;
            t.partition_by = Some(PartitionBy { strategy, elements });
        }
        if self.accept("using") {
            t.access_method = Some(self.name()?);
        }
        t.options = self.with_storage()?;
        t.on_commit = self.on_commit()?;
        t.tablespace = self.tablespace()?;
        Ok(U::CreateTable(Box::new(t)))
    }

    /// Is this `(a, b, c) … AS`, names alone?
    fn as_ahead(&self) -> bool {
        if !self.is_op("(") {
            return false;
        }
        let mut n = 1;
        loop {
            if !self.is_name_at(n) {
                return false;
            }
            if self.is_op_at(n + 1, ")") {
                break;
            }
            if !self.is_op_at(n + 1, ",") {
                return false;
            }
            n += 2;
        }
        ["as", "using", "with", "on", "tablespace"].iter().any(|w| self.is_at(n + 2, w))
    }

    pub(super) fn create_as(
        &mut self,
        persistence: RelationPersistence,
        materialized_view: bool,
    ) -> Result<UtilityStatement> {
        let if_not_exists = self.if_not_exists();
        let name = self.object_name()?;
        let columns = if self.is_op("(") { self.paren_list(Self::name)? } else { Vec::new() };
        let access_method = if self.accept("using") { Some(self.name()?) } else { None };
        let options = self.with_storage()?;
        let on_commit = self.on_commit()?;
        let tablespace = self.tablespace()?;
        self.expect("as")?;
        let start = self.loc();
        let statement = if self.is("execute") && !materialized_view {
            super::Statement::Utility(Box::new(self.session_statement()?))
        } else {
            super::Statement::Query(QueryStatement::Select(self.select()?))
        };
        let query_span = (start, self.last_end());
        let with_data = self.with_data()?;
        Ok(U::CreateTableAs(Box::new(CreateTableAs {
            name,
            columns,
            persistence,
            if_not_exists,
            materialized_view,
            select_into: false,
            access_method,
            options,
            on_commit,
            tablespace,
            statement,
            query_span,
            with_data,
        })))
    }

    fn on_commit(&mut self) -> Result<OnCommit> {
        if !self.accept_all(&["on", "commit"]) {
            return Ok(OnCommit::PreserveRows);
        }
        if self.accept("drop") {
            return Ok(OnCommit::Drop);
        }
        let delete = self.accept("delete");
        if !delete {
            self.expect("preserve")?;
        }
        self.expect("rows")?;
        Ok(if delete { OnCommit::DeleteRows } else { OnCommit::PreserveRows })
    }

    pub(super) fn tablespace(&mut self) -> Result<Option<String>> {
        if self.accept("tablespace") { Ok(Some(self.name()?)) } else { Ok(None) }
    }

    /// `WITH ( … )`, `WITHOUT OIDS`
    pub(super) fn with_storage(&mut self) -> Result<Vec<UtilityOption>> {
        if self.accept_all(&["without", "oids"]) {
            return Ok(Vec::new());
        }
        if self.is("with") && self.is_op_at(1, "(") {
            self.skip(1);
            return self.storage_options();
        }
        Ok(Vec::new())
    }

    /// `( [namespace.]name [= value], … )`
    pub fn storage_options(&mut self) -> Result<Vec<UtilityOption>> {
        self.paren_list(|p| {
            let loc = p.loc();
            let mut name = p.label()?;
            if p.accept_op(".") {
                name.push('.');
                name.push_str(&p.label()?);
            }
            let value = if p.accept_op("=") {
                match p.option_value()? {
                    Some(v) => Some(v),
                    None => return Err(p.unexpected()),
                }
            } else {
                None
            };
            Ok(UtilityOption { name: name.to_ascii_lowercase(), value, loc })
        })
    }

    fn partition_element(&mut self) -> Result<TableElement> {
        if self.is_constraint_ahead() {
            return Ok(TableElement::Constraint(self.table_constraint()?));
        }
        Err(base::Error::unsupported("column options of a partition"))
    }

    pub fn partition_bound(&mut self) -> Result<PartitionBound> {
        if self.accept("default") {
            return Ok(PartitionBound::Default);
        }
        self.expect_all(&["for", "values"])?;
        if self.accept("in") {
            return Ok(PartitionBound::In(self.paren_list(Self::expr)?));
        }
        if self.accept("from") {
            let from = self.paren_list(Self::expr)?;
            self.expect("to")?;
            let to = self.paren_list(Self::expr)?;
            return Ok(PartitionBound::Range { from, to });
        }
        self.expect("with")?;
        self.expect_op("(")?;
        self.expect("modulus")?;
        let modulus = self.integer()?;
        self.expect_op(",")?;
        self.expect("remainder")?;
        let remainder = self.integer()?;
        self.expect_op(")")?;
        Ok(PartitionBound::Hash { modulus, remainder })
    }

    fn table_element(&mut self) -> Result<TableElement> {
        if self.accept("like") {
            let table = self.object_name()?;
            let mut options = Vec::new();
            while self.is_any(&["including", "excluding"]) {
                let including = self.is("including");
                self.skip(1);
                options.push((including, self.label()?));
            }
            return Ok(TableElement::Like { table, options });
        }
        if self.is_constraint_ahead() {
            return Ok(TableElement::Constraint(self.table_constraint()?));
        }
        Ok(TableElement::Column(self.column_def()?))
    }

    pub fn is_constraint_ahead(&self) -> bool {
        self.is_any(&["constraint", "check", "unique", "primary", "foreign", "exclude"])
            && !(self.is("exclude") && !(self.is_at(1, "using") || self.is_op_at(1, "(")))
            || (self.is("not") && self.is_at(1, "null"))
    }

    pub fn column_def(&mut self) -> Result<ColumnDef> {
        let loc = self.loc();
        let name = self.name()?;
        let ty = self.type_name()?;
        let mut storage = None;
        let mut compression = None;
        if self.accept("storage") {
            storage = Some(self.label()?.to_ascii_lowercase());
        }
        if self.accept("compression") {
            compression = Some(self.label()?.to_ascii_lowercase());
        }
        let mut column = ColumnDef {
            name,
            ty,
            collation: None,
            storage,
            compression,
            constraints: Vec::new(),
            loc,
        };
        self.column_constraints(&mut column)?;
        Ok(column)
    }

    pub(super) fn column_constraints(&mut self, column: &mut ColumnDef) -> Result<()> {
        self.column_timing(false, false, false)?;
        loop {
            let loc = self.loc();
            if self.accept("collate") {
                column.collation = Some(self.collation_name()?);
                continue;
            }
            let name = if self.accept("constraint") { Some(self.name()?) } else { None };
            let kind = if self.accept_all(&["not", "null"]) {
                C::NotNull
            } else if self.accept("null") {
                C::Null
            } else if self.accept("default") {
                C::Default(self.restricted_expr()?)
            } else if self.accept("check") {
                self.expect_op("(")?;
                let e = self.expr()?;
                self.expect_op(")")?;
                C::Check(e)
            } else if self.accept("unique") {
                C::Unique(self.unique_options(true)?)
            } else if self.accept_all(&["primary", "key"]) {
                C::PrimaryKey(self.unique_options(false)?)
            } else if self.accept("references") {
                C::References(self.references()?)
            } else if self.accept("generated") {
                self.generated()?
            } else if name.is_some() {
                return Err(self.unexpected());
            } else {
                return Ok(());
            };
            let deferrable = matches!(kind, C::Unique(_) | C::PrimaryKey(_) | C::References(_));
            let alone = matches!(kind, C::Check(_) | C::NotNull);
            let enforceable = matches!(kind, C::Check(_) | C::References(_));
            let timing = self.column_timing(deferrable, alone, enforceable)?;
            column.constraints.push(ColumnConstraint { name, kind, timing, loc });
        }
    }

    fn generated(&mut self) -> Result<C> {
        let always = self.accept("always");
        if !always {
            self.expect_all(&["by", "default"])?;
        }
        self.expect("as")?;
        if self.accept("identity") {
            let options = self.paren_sequence_options()?;
            return Ok(C::Identity { always, options });
        }
        self.expect_op("(")?;
        let expr = self.expr()?;
        self.expect_op(")")?;
        let when = if self.accept("stored") {
            Generation::Stored
        } else {
            self.accept("virtual");
            Generation::Virtual
        };
        if !always {
            let e =
                err!(SYNTAX_ERROR, "for a generated column, GENERATED ALWAYS must be specified");
            return Err(e);
        }
        Ok(C::Generated { expr, when })
    }

    pub fn paren_sequence_options(&mut self) -> Result<Vec<S>> {
        if !self.accept_op("(") {
            return Ok(Vec::new());
        }
        let options = self.sequence_options()?;
        self.expect_op(")")?;
        Ok(options)
    }

    fn unique_options(&mut self, unique: bool) -> Result<UniqueOptions> {
        let mut o = UniqueOptions::default();
        if unique && self.accept_all(&["nulls", "not", "distinct"]) {
            o.nulls_not_distinct = true;
        } else {
            self.accept_all(&["nulls", "distinct"]);
        }
        self.unique_rest(&mut o)?;
        Ok(o)
    }
    fn unique_rest(&mut self, o: &mut UniqueOptions) -> Result<()> {
        if self.accept("include") {
            o.include = self.paren_list(Self::name)?;
        }
        o.options = self.with_storage()?;
        if self.accept_all(&["using", "index", "tablespace"]) {
            o.tablespace = Some(self.name()?);
        }
        Ok(())
    }

    fn references(&mut self) -> Result<References> {
        let table = self.object_name()?;
        let columns = if self.is_op("(") { self.paren_list(Self::name)? } else { Vec::new() };
        let mut r = References {
            table,
            columns,
            match_full: false,
            on_update: ReferentialAction::NoAction,
            on_delete: ReferentialAction::NoAction,
            on_delete_columns: Vec::new(),
        };
        if self.accept("match") {
            if self.accept("full") {
                r.match_full = true;
            } else if self.is("partial") {
                return Err(base::err!(FEATURE_NOT_SUPPORTED, "MATCH PARTIAL not yet implemented"));
            } else {
                self.expect("simple")?;
            }
        }
        while self.is("on") && (self.is_at(1, "update") || self.is_at(1, "delete")) {
            let update = self.is_at(1, "update");
            let at = self.loc();
            self.skip(2);
            let action = if self.accept_all(&["no", "action"]) {
                ReferentialAction::NoAction
            } else if self.accept("restrict") {
                ReferentialAction::Restrict
            } else if self.accept("cascade") {
                ReferentialAction::Cascade
            } else {
                self.expect("set")?;
                let action = if self.accept("null") {
                    ReferentialAction::SetNull
                } else {
                    self.expect("default")?;
                    ReferentialAction::SetDefault
                };
                if self.is_op("(") {
                    let columns = self.paren_list(Self::name)?;
                    if update {
                        return Err(self.no_columns_on_update(action, at));
                    }
                    r.on_delete_columns = columns;
                }
                action
            };
            if update {
                r.on_update = action;
            } else {
                r.on_delete = action;
            }
        }
        Ok(r)
    }

    fn no_columns_on_update(&self, action: ReferentialAction, at: super::ast::Loc) -> base::Error {
        let words = match action {
            ReferentialAction::SetDefault => "SET DEFAULT",
            _ => "SET NULL",
        };
        let e = err!(
            FEATURE_NOT_SUPPORTED,
            "a column list with {words} is only supported for ON DELETE actions"
        );
        super::error_at(self.source, e, at)
    }

    pub fn table_constraint(&mut self) -> Result<TableConstraint> {
        let loc = self.loc();
        let name = if self.accept("constraint") { Some(self.name()?) } else { None };
        let kind = if self.accept("check") {
            self.expect_op("(")?;
            let e = self.expr()?;
            self.expect_op(")")?;
            K::Check(e)
        } else if self.accept_all(&["not", "null"]) {
            K::NotNull(self.name()?)
        } else if self.is("unique") || self.is("primary") {
            let primary = self.is("primary");
            self.skip(1);
            if primary {
                self.expect("key")?;
            }
            if self.accept_all(&["using", "index"]) {
                K::UsingIndex { primary, index: self.name()? }
            } else {
                let mut o = UniqueOptions::default();
                if !primary && self.accept_all(&["nulls", "not", "distinct"]) {
                    o.nulls_not_distinct = true;
                } else {
                    self.accept_all(&["nulls", "distinct"]);
                }
                let columns = self.paren_list(Self::name)?;
                self.unique_rest(&mut o)?;
                if primary {
                    K::PrimaryKey { columns, options: o }
                } else {
                    K::Unique { columns, options: o }
                }
            }
        } else if self.accept_all(&["foreign", "key"]) {
            let columns = self.paren_list(Self::name)?;
            self.expect("references")?;
            K::ForeignKey { columns, references: self.references()? }
        } else if self.is("exclude") {
            return Err(base::Error::unsupported("EXCLUDE constraint"));
        } else {
            return Err(self.unexpected());
        };
        let timing = self.table_timing(&kind)?;
        Ok(TableConstraint { name, kind, timing, loc })
    }
}
