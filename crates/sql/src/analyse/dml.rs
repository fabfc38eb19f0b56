//! INSERT, UPDATE, DELETE.

use super::dml_parts::{self, Given};
use super::from::{subquery_entry, table_entry};
use super::scope::Item;
use super::{Analyser, Clause};
use crate::parse::as_values;
use crate::parse::ast::{
    self, AssignTarget, Delete, ExprKind, Insert, Loc, ObjectName, SetClause, TableRef, Update,
};
use crate::query::{Command, FromItem, Query, RangeTableEntry, RteKind, TargetEntry, UsedColumns};
use base::{Result, SqlError, SqlState, err};
use engine::catalog::model::{Column, Identity, RelationKind, Table};
use expr::tree::CallForm;
use expr::{Constant, Expr, SubLinkKind, TypeRef};
use std::sync::Arc;
use types::Datum;
use types::facts::CastContext;
use types::oids::{BOOL, RECORD, TID, UNKNOWN};

/// `tideq`
const TID_EQ: u32 = 1292;

/// A column's value when none is given.
pub(super) fn default_value(c: &Column) -> Expr {
    if let (Some(_), Some(sequence)) = (c.identity, c.identity_sequence) {
        return Expr::NextValue { sequence: sequence.0, ty: c.ty };
    }
    let null = || Expr::Const(Constant { ty: c.ty, value: Datum::Null });
    if c.is_generated() { null() } else { super::domains::column_default(c).unwrap_or_else(null) }
}

pub(super) fn is_default(e: &ast::Expr) -> bool {
    matches!(e.kind, ExprKind::Default)
}

/// INSERT's row: every live column with what is given for it, or its default.
pub(super) fn insert_targets(t: &Table, given: Vec<Option<Expr>>) -> Vec<TargetEntry> {
    // The executor works out generated columns from the finished row; NULL stands for them.
    // What a view gets no value for is the table's to say.
    let left = |e: &Option<Expr>| t.kind == RelationKind::View && e.is_none();
    let live = t.columns.iter().zip(given).filter(|(c, e)| !c.dropped && !left(e));
    live.map(|(c, e)| TargetEntry {
        expr: e.unwrap_or_else(|| default_value(c)),
        name: c.name.clone(),
        target_column: Some(c.number),
        origin: (0, 0),
        hidden: false,
    })
    .collect()
}

/// Why a column takes no values: it is worked out, or an identity column that always is.
pub(super) fn refusal(
    c: &Column,
    name: &str,
    update: bool,
    overriding: Option<bool>,
) -> Option<base::Error> {
    let (detail, hint) = if c.is_generated() {
        (format!("Column \"{name}\" is a generated column."), None)
    } else if c.identity == Some(Identity::Always) && overriding.is_none() {
        let hint = (!update).then_some("Use OVERRIDING SYSTEM VALUE to override.");
        let detail = "is an identity column defined as GENERATED ALWAYS.";
        (format!("Column \"{name}\" {detail}"), hint)
    } else {
        return None;
    };
    let message = if update {
        format!("column \"{name}\" can only be updated to DEFAULT")
    } else {
        format!("cannot insert a non-DEFAULT value into column \"{name}\"")
    };
    let mut e = SqlError::new(SqlState::GENERATED_ALWAYS, message).detail(detail);
    e.hint = hint.map(str::to_owned);
    Some(e.into())
}

impl Analyser<'_> {
    /// The table that a statement changes; entry 0 of the level.
    pub(super) fn target(
        &mut self,
        name: &ObjectName,
        alias: Option<&ast::Alias>,
        only: bool,
        verb: &str,
        privilege: u32,
    ) -> Result<Arc<Table>> {
        let t = self.relation(name)?;
        match t.kind {
            RelationKind::Table | RelationKind::PartitionedTable => {}
            RelationKind::View => {
                let (entry, t) = self.view_target(&t)?;
                self.add_target(entry, alias, privilege);
                return Ok(t);
            }
            RelationKind::Sequence | RelationKind::MaterializedView if verb == "merge into" => {
                let kinds = match t.kind {
                    RelationKind::Sequence => "sequences",
                    _ => "materialized views",
                };
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!("cannot execute MERGE on relation \"{}\"", t.name),
                )
                .detail(format!("This operation is not supported for {kinds}."))
                .into());
            }
            RelationKind::Sequence => {
                let e = err!(WRONG_OBJECT_TYPE, "cannot change sequence \"{}\"", t.name);
                return self.at(name.loc, e);
            }
            RelationKind::MaterializedView => {
                let e = err!(WRONG_OBJECT_TYPE, "cannot change materialized view \"{}\"", t.name);
                return self.at(name.loc, e);
            }
            RelationKind::Toast => {
                let e = err!(WRONG_OBJECT_TYPE, "cannot change TOAST relation \"{}\"", t.name);
                return self.at(name.loc, e);
            }
            _ => {
                let opens = crate::relations::check_opens(&t);
                return opens.and(Ok(t)).or_else(|e| self.at(name.loc, e));
            }
        }
        self.add_target(table_entry(&t, only), alias, privilege);
        Ok(t)
    }

    fn add_target(
        &mut self,
        mut entry: RangeTableEntry,
        alias: Option<&ast::Alias>,
        privilege: u32,
    ) {
        entry.required_privileges = privilege;
        if let Some(a) = alias {
            entry.alias.clone_from(&a.name);
            entry.has_alias = true;
        }
        self.level().rtes.push(entry);
    }

    /// Whoever names columns of the target, as they are, were or will be, must be allowed to read it.
    pub(super) fn may_read(&mut self, images: Option<(usize, usize)>, excluded: Option<usize>) {
        let rtes = &mut self.level().rtes;
        let images = images.into_iter().flat_map(|(old, new)| [old, new]);
        for image in images.chain(excluded) {
            let read = rtes[image].used.take().map_or(Vec::new(), |used| used.read);
            rtes[0].reads(read);
        }
        let target = &mut rtes[0];
        if target.used.as_ref().is_some_and(|used| !used.read.is_empty()) {
            target.required_privileges |= 1;
        }
    }

    /// Whoever gives columns of the target values must be allowed to.
    pub(super) fn writes(&mut self, columns: impl IntoIterator<Item = i32>, update: bool) {
        if let Some(used) = &mut self.level().rtes[0].used {
            let list = if update { &mut used.updated } else { &mut used.inserted };
            UsedColumns::add(list, columns);
        }
    }

    /// The target as names see it.
    pub(super) fn target_item(&mut self, t: &Table) -> Item {
        let entry = &self.level().rtes[0];
        let mut item = Item::table(0, entry.alias.clone());
        if !entry.has_alias {
            item.schema = Some(t.namespace_name.clone());
        }
        item
    }

    fn find_column<'t>(
        &self,
        t: &'t Table,
        column: &AssignTarget,
        update: bool,
    ) -> Result<&'t Column> {
        if let Some(c) = t.column(&column.column) {
            return Ok(c);
        }
        let system = ["ctid", "xmin", "cmin", "xmax", "cmax", "tableoid"];
        if update && system.contains(&column.column.as_str()) {
            let text = format!("cannot assign to system column \"{}\"", column.column);
            return self
                .at(column.loc, SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text).into());
        }
        let text =
            format!("column \"{}\" of relation \"{}\" does not exist", column.column, t.name);
        let mut e = SqlError::new(SqlState::UNDEFINED_COLUMN, text);
        let target = self.levels.last().and_then(|l| l.rtes.first());
        if update
            && !column.indirection.is_empty()
            && target.is_some_and(|entry| entry.alias == column.column)
        {
            e = e.hint("SET target columns cannot be qualified with the relation name.");
        }
        self.at(column.loc, e.into())
    }

    /// Refuses values for generated and identity columns where SQL does.
    pub(super) fn may_set(
        &mut self,
        c: &Column,
        update: bool,
        overriding: Option<bool>,
        loc: Loc,
    ) -> Result<()> {
        let _ = loc;
        match refusal(c, self.name_below(c), update, overriding) {
            Some(e) => self.refuse_below(c, e),
            None => Ok(()),
        }
    }

    pub fn insert(&mut self, s: &Insert) -> Result<Query> {
        if let Some(w) = &s.with {
            self.with_clause(w)?;
        }
        let alias = s.alias.as_ref().map(|n| ast::Alias { name: n.clone(), columns: Vec::new() });
        let mut privilege = 2;
        if let Some(c) = &s.on_conflict {
            privilege |= if c.update.is_some() { 4 } else { 0 };
            privilege |= if matches!(c.target, ast::ConflictTarget::None) { 0 } else { 1 };
        }
        let t = self.target(&s.table, alias.as_ref(), false, "insert into", privilege)?;
        self.level().overriding = s.overriding_system;
        let columns = self.insert_columns(s, &t)?;
        if !s.columns.is_empty() {
            self.writes(columns.iter().map(|c| c.column.number), false);
        }
        let mut from = Vec::new();
        let mut given: Vec<Option<Expr>> = vec![None; t.columns.len()];
        let mut named = Vec::new();
        match &s.source {
            None => {}
            Some(source) => match as_values(source).map(Vec::as_slice) {
                Some([row]) => {
                    let values = self.value_row(s, row, &columns, Clause::OneRow)?;
                    for ((c, e), written) in columns.iter().zip(values).zip(row) {
                        named.push(c.column.number);
                        if !(is_default(written) && self.has_default_below(c.column)) {
                            c.put(&mut given, e);
                        }
                    }
                }
                Some(rows) => {
                    let width = rows.first().map_or(0, Vec::len);
                    if let Some(r) = rows.iter().find(|r| r.len() != width) {
                        let e = err!(SYNTAX_ERROR, "VALUES lists must all be the same length");
                        return self.at(r.first().map_or(s.table.loc, |e| e.loc), e);
                    }
                    self.value_rows(s, rows, &columns, &mut given, &mut from)?;
                }
                None => self.select_source(s, source, &columns, &mut given, &mut from)?,
            },
        }
        if named.is_empty() {
            named.extend((1..).zip(&given).filter(|(_, e)| e.is_some()).map(|(n, _)| n));
        }
        let mut targets = insert_targets(&t, given);
        super::domains::check_changed_elements(&mut targets, &t);
        let on_conflict = match &s.on_conflict {
            Some(c) => Some(self.on_conflict(c, &t)?),
            None => None,
        };
        self.level().items.clear();
        let item = self.target_item(&t);
        self.level().items.push(item);
        let (returning, images) = self.returning(&s.returning, &t)?;
        self.may_read(images, on_conflict.as_ref().and_then(|c| c.excluded_rte));
        let mut q = self.gather(Command::Insert);
        q.named = named;
        q.result_rte = Some(0);
        q.from = from;
        q.targets = targets;
        q.returning = returning;
        q.images = images;
        let assigned = on_conflict.iter().flat_map(|c| c.update.iter().flatten());
        q.named.extend(assigned.filter_map(|t| t.target_column));
        q.on_conflict = on_conflict;
        self.write_through(q)
    }

    /// The columns that get values, in the order given.
    pub(super) fn insert_columns<'t>(
        &mut self,
        s: &Insert,
        t: &'t Table,
    ) -> Result<Vec<Given<'t>>> {
        let mut columns: Vec<Given<'t>> = Vec::new();
        if s.columns.is_empty() {
            let all = t.columns.iter().filter(|c| !c.dropped);
            columns.extend(all.map(|column| Given { column, part: None, loc: s.table.loc }));
        }
        for c in &s.columns {
            let column = self.find_column(t, c, false)?;
            let part = self.part_of(column, c, false)?;
            let twice = |o: &Given| {
                o.column.number == column.number && (o.part.is_none() || part.is_none())
            };
            if columns.iter().any(twice) {
                let e = err!(DUPLICATE_COLUMN, "column \"{}\" specified more than once", c.column);
                return self.at(c.loc, e);
            }
            columns.push(Given { column, part, loc: c.loc });
        }
        Ok(columns)
    }

    /// Too many or too few values for the columns.
    fn count_values(&self, s: &Insert, locs: &[Loc], columns: usize) -> Result<()> {
        if locs.len() > columns {
            let e = err!(SYNTAX_ERROR, "INSERT has more expressions than target columns");
            return self.at(locs[columns], e);
        }
        if locs.len() < columns && !s.columns.is_empty() {
            let e = err!(SYNTAX_ERROR, "INSERT has more target columns than expressions");
            return self.at(s.columns[locs.len()].loc, e);
        }
        Ok(())
    }

    pub(super) fn value_row(
        &mut self,
        s: &Insert,
        row: &[ast::Expr],
        columns: &[Given<'_>],
        clause: Clause,
    ) -> Result<Vec<Expr>> {
        let locs: Vec<Loc> = row.iter().map(|e| e.loc).collect();
        self.count_values(s, &locs, columns.len())?;
        self.writes(columns[..row.len()].iter().map(|c| c.column.number), false);
        let saved = self.enter(clause);
        let mut out = Vec::with_capacity(row.len());
        for (e, given) in row.iter().zip(columns) {
            let c = given.column;
            if s.overriding_system == Some(false) && c.identity.is_some() {
                out.push(default_value(c));
                continue;
            }
            if is_default(e) {
                if let Some(part) = &given.part {
                    return self.no_default_of_part(part.is_of_row(), given.loc);
                }
                out.push(self.row_default(c, s.overriding_system, e.loc)?);
                continue;
            }
            self.may_set(c, false, s.overriding_system, e.loc)?;
            out.push(match &given.part {
                None => {
                    let x = self.declared_expr(e)?;
                    self.assign(x, c.declared(), &c.name, e.loc)?
                }
                Some(part) => {
                    let x = self.expr(e)?;
                    self.part_value(part, x, given.loc, e.loc)?
                }
            });
        }
        self.enter(saved);
        Ok(out)
    }

    fn value_rows(
        &mut self,
        s: &Insert,
        rows: &[Vec<ast::Expr>],
        columns: &[Given<'_>],
        given: &mut [Option<Expr>],
        from: &mut Vec<FromItem>,
    ) -> Result<()> {
        let mut out = Vec::with_capacity(rows.len());
        for r in rows {
            out.push(self.value_row(s, r, columns, Clause::Values)?);
        }
        let width = out.first().map_or(0, Vec::len);
        let entry = RangeTableEntry {
            kind: RteKind::Values { rows: out },
            alias: "*VALUES*".into(),
            has_alias: false,
            column_aliases: 0,
            column_names: (1..=width).map(|i| format!("column{i}")).collect(),
            column_types: columns[..width].iter().map(Given::kept_as).collect(),
            required_privileges: 0,
            used: None,
            check_as: 0,
            lateral: false,
        };
        self.level().rtes.push(entry);
        let rte = self.level().rtes.len() - 1;
        for (i, c) in columns[..width].iter().enumerate() {
            c.put(given, self.var(rte, i));
        }
        from.push(FromItem::Rte(rte));
        Ok(())
    }

    fn select_source(
        &mut self,
        s: &Insert,
        source: &ast::Select,
        columns: &[Given<'_>],
        given: &mut [Option<Expr>],
        from: &mut Vec<FromItem>,
    ) -> Result<()> {
        let mut q = self.nested(|a| a.select_with(source, true))?;
        let shown = q.targets.iter().filter(|t| !t.hidden).count();
        let mut locs: Vec<Loc> = match &source.body {
            ast::SelectBody::Core(c) => c.targets.iter().map(|t| t.expr.loc).collect(),
            _ => Vec::new(),
        };
        locs.resize(shown, source.loc);
        self.count_values(s, &locs, columns.len())?;
        self.writes(columns[..shown].iter().map(|c| c.column.number), false);
        // Unknown literals take the column's type where they stand.
        let plain = q.set_operation.is_none();
        for (i, t) in q.targets.iter_mut().filter(|t| !t.hidden).enumerate() {
            if t.expr.ty().oid == UNKNOWN && plain {
                let e = std::mem::replace(&mut t.expr, Expr::And(Vec::new()));
                t.expr = match e {
                    Expr::Const(_) | Expr::Param { .. } => {
                        let wanted = TypeRef::of(columns[i].wanted().oid);
                        self.coerce(e, wanted, CastContext::Assignment, false, locs[i])?
                    }
                    other => self.known(other, locs[i])?,
                };
            }
        }
        let mut entry = subquery_entry(q, false);
        entry.alias = "*SELECT*".into();
        self.level().rtes.push(entry);
        let rte = self.level().rtes.len() - 1;
        for (i, to) in columns[..shown].iter().enumerate() {
            let c = to.column;
            if s.overriding_system == Some(false) && c.identity.is_some() {
                continue;
            }
            self.may_set(c, false, s.overriding_system, locs[i])?;
            let v = self.var(rte, i);
            let v = match &to.part {
                None => self.assign(v, c.declared(), &c.name, locs[i])?,
                Some(part) => self.part_value(part, v, to.loc, locs[i])?,
            };
            to.put(given, v);
        }
        from.push(FromItem::Rte(rte));
        Ok(())
    }

    /// SET's assignments.
    pub(super) fn set_list(&mut self, list: &[SetClause], t: &Table) -> Result<Vec<TargetEntry>> {
        let saved = self.enter(Clause::Update);
        let mut out: Vec<TargetEntry> = Vec::new();
        for clause in list {
            match clause {
                SetClause::Single { target, value } => {
                    let c = self.find_column(t, target, true)?;
                    let e = if target.indirection.is_empty() {
                        self.set_value(c, value)?
                    } else {
                        self.set_element(c, target, value)?
                    };
                    self.push_assignment(&mut out, c, e, target.loc)?;
                }
                SetClause::Multi { targets, value } => {
                    self.set_row(targets, value, t, &mut out)?;
                }
            }
        }
        self.enter(saved);
        self.writes(out.iter().filter_map(|t| t.target_column), true);
        super::domains::check_changed_elements(&mut out, t);
        Ok(out)
    }

    fn push_assignment(
        &self,
        out: &mut Vec<TargetEntry>,
        c: &Column,
        mut expr: Expr,
        loc: Loc,
    ) -> Result<()> {
        // a[1] = …, a[2] = …: the second changes what the first has made.
        if let Some(before) = out.iter_mut().find(|t| t.target_column == Some(c.number))
            && let Some(arg) = dml_parts::changed(&mut expr)
            && dml_parts::changed(&mut before.expr).is_some()
        {
            std::mem::swap(arg, &mut before.expr);
            before.expr = expr;
            return Ok(());
        }
        if out.iter().any(|t| t.target_column == Some(c.number)) {
            let e = err!(SYNTAX_ERROR, "multiple assignments to same column \"{}\"", c.name);
            let _ = loc;
            return Err(e);
        }
        out.push(TargetEntry {
            expr,
            name: c.name.clone(),
            target_column: Some(c.number),
            origin: (0, 0),
            hidden: false,
        });
        Ok(())
    }

    pub(super) fn set_value(&mut self, c: &Column, value: &ast::Expr) -> Result<Expr> {
        if is_default(value) {
            return self.set_default(c, value.loc);
        }
        self.may_set(c, true, None, value.loc)?;
        let e = self.declared_expr(value)?;
        self.assign(e, c.declared(), &c.name, value.loc)
    }

    /// `(a, b) = …`
    fn set_row(
        &mut self,
        targets: &[AssignTarget],
        value: &ast::Expr,
        t: &Table,
        out: &mut Vec<TargetEntry>,
    ) -> Result<()> {
        let wrong = |s: &Self| {
            s.at(value.loc, err!(SYNTAX_ERROR, "number of columns does not match number of values"))
        };
        match &value.kind {
            // `ROW(v.*)` is as many values as there are columns.
            ExprKind::Row { fields, .. }
                if fields.iter().any(|f| matches!(f.kind, ExprKind::Star(_))) =>
            {
                let Expr::Row { fields, .. } = self.row(fields, value.loc)? else {
                    return wrong(self);
                };
                if fields.len() != targets.len() {
                    return wrong(self);
                }
                for (target, v) in targets.iter().zip(fields) {
                    let c = self.find_column(t, target, true)?;
                    self.may_set(c, true, None, value.loc)?;
                    let e = self.assign(v, c.declared(), &c.name, value.loc)?;
                    self.push_assignment(out, c, e, target.loc)?;
                }
                Ok(())
            }
            ExprKind::Row { fields, .. } => {
                if fields.len() != targets.len() {
                    return wrong(self);
                }
                for (target, v) in targets.iter().zip(fields) {
                    let c = self.find_column(t, target, true)?;
                    let e = if target.indirection.is_empty() {
                        self.set_value(c, v)?
                    } else {
                        self.set_element(c, target, v)?
                    };
                    self.push_assignment(out, c, e, target.loc)?;
                }
                Ok(())
            }
            ExprKind::Subquery(q) => {
                let mut sub = self.nested(|a| a.select(q))?;
                sub.plain_outputs();
                let columns: Vec<(String, TypeRef)> = sub
                    .targets
                    .iter()
                    .filter(|t| !t.hidden)
                    .map(|t| (t.name.clone(), t.expr.ty()))
                    .collect();
                if columns.len() != targets.len() {
                    return wrong(self);
                }
                let level = self.level();
                level.sub_selects.push(sub);
                let row = Expr::SubLink {
                    kind: SubLinkKind::Row,
                    subquery: level.sub_selects.len() - 1,
                    test: None,
                    ty: TypeRef::of(RECORD),
                };
                for (index, (target, (n, ty))) in targets.iter().zip(columns).enumerate() {
                    let c = self.find_column(t, target, true)?;
                    self.may_set(c, true, None, target.loc)?;
                    let field = Expr::Field { arg: Box::new(row.clone()), index, name: n, ty };
                    let e = match self.part_of(c, target, true)? {
                        None => self.assign(field, c.declared(), &c.name, value.loc)?,
                        Some(part) => {
                            let v = self.part_value(&part, field, target.loc, value.loc)?;
                            let (number, ty) = (c.number, c.ty);
                            part.put(Expr::Var { levels_up: 0, rte: 0, column: number, ty }, v)
                        }
                    };
                    self.push_assignment(out, c, e, target.loc)?;
                }
                Ok(())
            }
            _ => self.at(
                value.loc,
                err!(
                    FEATURE_NOT_SUPPORTED,
                    "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() \
                     expression"
                ),
            ),
        }
    }

    /// FROM or USING beside a target.
    fn beside(&mut self, t: &Table, list: &[TableRef]) -> Result<Vec<FromItem>> {
        let mut item = self.target_item(t);
        item.forbidden = true;
        item.lateral_only = true;
        item.target = true;
        self.level().items.push(item.clone());
        let rest = self.from_clause(list)?;
        item.forbidden = false;
        item.lateral_only = false;
        let items = &mut self.level().items;
        items[0] = item;
        let target = &items[0];
        if items[1..].iter().any(|i| i.is_called_as(target)) {
            return Err(err!(
                DUPLICATE_ALIAS,
                "table name \"{}\" specified more than once",
                items[0].name
            ));
        }
        let mut from = vec![FromItem::Rte(0)];
        from.extend(rest);
        Ok(from)
    }

    fn refuse_cursor_on_view(&self, name: &ObjectName, filter: Option<&ast::Expr>) -> Result<()> {
        let by_cursor = filter.is_some_and(|f| matches!(f.kind, ExprKind::CurrentOf(_)));
        if by_cursor
            && let Some(t) = self.catalog.table_by_name(name.schema.as_deref(), &name.name)?
            && t.kind == RelationKind::View
        {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "WHERE CURRENT OF on a view is not implemented"
            ));
        }
        Ok(())
    }

    /// WHERE of UPDATE and DELETE: a condition, or the row on which a cursor stands.
    fn changed_rows(&mut self, filter: Option<&ast::Expr>, t: &Table) -> Result<Option<Expr>> {
        let Some(ast::Expr { kind: ExprKind::CurrentOf(cursor), .. }) = filter else {
            return self.condition(filter, Clause::Where, "WHERE");
        };
        let tid = TypeRef::of(TID);
        Ok(Some(Expr::Call {
            function: TID_EQ,
            args: vec![
                Expr::Var { levels_up: 0, rte: 0, column: -1, ty: tid },
                Expr::CurrentOf {
                    cursor: cursor.clone(),
                    parameter: self.cursor_variable(cursor)?,
                    table: t.oid.0,
                },
            ],
            arg_types: vec![tid, tid],
            ty: TypeRef::of(BOOL),
            // As a call of the function it joins no class of equal values.
            operator: 0,
            form: CallForm::Function,
        }))
    }

    pub fn update(&mut self, s: &Update) -> Result<Query> {
        if let Some(w) = &s.with {
            self.with_clause(w)?;
        }
        self.refuse_cursor_on_view(&s.table, s.filter.as_ref())?;
        let t = self.target(&s.table, s.alias.as_ref(), s.only, "update", 4)?;
        let from = self.beside(&t, &s.from)?;
        let targets = self.set_list(&s.set, &t)?;
        let named = targets.iter().filter_map(|t| t.target_column).collect();
        // Of a view they stay until it is said what is wrong with them.
        let worked_out = |n| t.columns.iter().any(|c| Some(c.number) == n && c.is_generated());
        let is_view = t.kind == RelationKind::View;
        let targets =
            targets.into_iter().filter(|e| is_view || !worked_out(e.target_column)).collect();
        let filter = self.changed_rows(s.filter.as_ref(), &t)?;
        let (returning, images) = self.returning(&s.returning, &t)?;
        self.may_read(images, None);
        let mut q = self.gather(Command::Update);
        q.named = named;
        q.result_rte = Some(0);
        q.from = from;
        q.targets = targets;
        q.filter = filter;
        q.returning = returning;
        q.images = images;
        self.write_through(q)
    }

    pub fn delete(&mut self, s: &Delete) -> Result<Query> {
        if let Some(w) = &s.with {
            self.with_clause(w)?;
        }
        self.refuse_cursor_on_view(&s.table, s.filter.as_ref())?;
        let t = self.target(&s.table, s.alias.as_ref(), s.only, "delete from", 8)?;
        let from = self.beside(&t, &s.using)?;
        let filter = self.changed_rows(s.filter.as_ref(), &t)?;
        let (returning, images) = self.returning(&s.returning, &t)?;
        self.may_read(images, None);
        let mut q = self.gather(Command::Delete);
        q.result_rte = Some(0);
        q.from = from;
        q.filter = filter;
        q.returning = returning;
        q.images = images;
        self.write_through(q)
    }
}
