//! Values into variables.
//!
//! # Invariants
//! A variable only ever holds values of its type: each is cast on its way in, unless it has that very type and modifier already. A record of a row type
//! has that type's columns; a RECORD those of what was assigned last.

use super::Run;
use crate::ast::{Into, Scalar, Step, Target};
use crate::frame::{INT4, TEXT};
use crate::host::{Columns, Site, TypeKind, Value};
use crate::names::{VarId, not_assigned};
use base::{Result, SqlError, SqlState, bail, err};
use expr::TypeRef;
use std::sync::Arc;
use types::{ArrayValue, Datum, RecordValue, json, oids};

const UNKNOWN: TypeRef = TypeRef { oid: oids::UNKNOWN, typmod: -1 };

/// Subscripts, evaluated.
enum Place<'a> {
    Field(&'a str),
    Element(Value),
    Slice(Option<Value>, Option<Value>),
}

impl Run<'_> {
    pub(super) fn assignment(&mut self, target: &Target, site: &Site) -> Result<()> {
        if target.steps.is_empty() && self.host.evaluate_into(site, self.frame, target.variable)? {
            return Ok(());
        }
        if target.steps.is_empty() && !site.sql().is_empty() {
            let value = self.host.evaluate(site, self.frame)?;
            let variable = self.frame.variable(target.variable);
            if variable.is_record() {
                return self.assign_row(target.variable, value);
            }
            let ty = variable.ty;
            if value.ty.oid == ty.oid && ty.typmod == -1 {
                if variable.not_null && value.value.is_null() {
                    return Err(self.null_refused(target.variable));
                }
                self.frame.set(target.variable, value.value);
                return Ok(());
            }
            let given = value.clone();
            return self
                .assign(target.variable, value)
                .map_err(|error| self.of_constant(error, site, given, ty));
        }
        self.assign_part(target, site)
    }

    /// The error of a cast to `to`. PostgreSQL casts constants when it plans the assignment, and says so; of literals it knows the place.
    fn of_constant(
        &mut self,
        error: base::Error,
        site: &Site,
        value: Value,
        to: TypeRef,
    ) -> base::Error {
        // Constraints of domains are looked at when it runs.
        let refused = value.value.is_null()
            || matches!(value.value, Datum::Record(_))
            || matches!(error.state(), SqlState::CHECK_VIOLATION | SqlState::NOT_NULL_VIOLATION);
        if refused || !self.host.parameters(site).is_empty() {
            return error;
        }
        let tokens = crate::lex::tokens(site.sql());
        let is_literal = tokens.len() == 2 && tokens[0].kind == crate::lex::Tok::Str;
        let plain = TypeRef { oid: to.oid, typmod: -1 };
        if is_literal && self.host.cast(value.value, value.ty, plain).is_err() {
            let at = site.text.len() - site.sql().len() + tokens[0].start;
            let mut error = error.to_sql_error();
            error.internal_position = Some(crate::lex::character_of(&site.text, at));
            error.internal_query = Some(site.text.to_string());
            return error.into();
        }
        // Moments depend on settings.
        match types::type_info(to.base().oid).map(|t| t.category) {
            Some('D' | 'T') => error,
            _ => error.within(site.context()),
        }
    }

    /// To a record. What is no row is cast, which is an error mostly.
    fn assign_row(&mut self, id: VarId, value: Value) -> Result<()> {
        let ty = self.frame.variable(id).ty;
        if matches!(value.value, Datum::Null | Datum::Record(_)) {
            return self.assign(id, value);
        }
        if ty.oid == oids::RECORD {
            bail!(FEATURE_NOT_SUPPORTED, "input of anonymous composite types is not implemented");
        }
        let value = self.cast(value, ty)?;
        self.assign(id, Value { value, ty })
    }

    fn assign_part(&mut self, target: &Target, site: &Site) -> Result<()> {
        if site.sql().is_empty() {
            let error = err!(SYNTAX_ERROR, "assignment source returned 0 columns");
            return Err(error.within(site.context()));
        }
        let mut places = Vec::with_capacity(target.steps.len());
        for step in &target.steps {
            places.push(match step {
                Step::Field(name) => Place::Field(name),
                Step::Element(at) => Place::Element(self.evaluate(at)?),
                Step::Slice(low, high) => {
                    let low = low.as_ref().map(|l| self.evaluate(l)).transpose()?;
                    let high = high.as_ref().map(|h| self.evaluate(h)).transpose()?;
                    Place::Slice(low, high)
                }
            });
        }
        let value = self.evaluate(site)?;
        self.assign_within(target.variable, &places, value, Some(site))
    }

    pub(super) fn assign_target(&mut self, target: &Target, value: Value) -> Result<()> {
        let mut places = Vec::new();
        for step in &target.steps {
            if let Step::Field(name) = step {
                places.push(Place::Field(name));
            }
        }
        if places.is_empty() {
            self.assign(target.variable, value)
        } else {
            self.assign_within(target.variable, &places, value, None)
        }
    }

    /// Assigns to a variable.
    pub(super) fn assign(&mut self, id: VarId, value: Value) -> Result<()> {
        let variable = self.frame.variable(id);
        if variable.is_record() {
            return self.assign_record(id, value);
        }
        let (ty, not_null) = (variable.ty, variable.not_null);
        let value = self.cast(value, ty)?;
        if not_null && value.is_null() {
            return Err(self.null_refused(id));
        }
        self.frame.set(id, value);
        Ok(())
    }

    fn null_refused(&self, id: VarId) -> base::Error {
        let name = &self.frame.variable(id).name;
        err!(
            NULL_VALUE_NOT_ALLOWED,
            "null value cannot be assigned to variable \"{name}\" declared NOT NULL"
        )
    }

    pub(super) fn cast(&mut self, value: Value, to: TypeRef) -> Result<Datum> {
        let Value { value, ty } = value;
        if ty.oid == to.oid && (to.typmod == -1 || ty.typmod == to.typmod) {
            return Ok(value);
        }
        self.host.cast(value, ty, to)
    }

    /// What a variable begins with: NULL, which a domain may refuse.
    pub(super) fn begin_null(&mut self, id: VarId) -> Result<()> {
        let variable = self.frame.variable(id);
        let (ty, kind) = (variable.ty, variable.kind.clone());
        self.frame.set(id, Datum::Null);
        if let TypeKind::Scalar { checked: true } | TypeKind::Row { checked: true, .. } = kind {
            self.host.cast(Datum::Null, UNKNOWN, ty)?;
        }
        Ok(())
    }

    fn assign_record(&mut self, id: VarId, value: Value) -> Result<()> {
        match value.value {
            Datum::Null => {
                if self.frame.variable(id).not_null {
                    return Err(self.null_refused(id));
                }
                self.begin_null(id)
            }
            Datum::Record(row) => {
                let variable = self.frame.variable(id);
                let same = row.type_oid == variable.ty.oid && variable.ty.oid != oids::RECORD;
                if same && matches!(variable.kind, TypeKind::Row { checked: false, .. }) {
                    self.frame.set(id, Datum::Record(row));
                    return Ok(());
                }
                let columns = Arc::clone(&row.columns);
                let fields = Some(Arc::unwrap_or_clone(row).fields);
                self.row_into_record(id, &columns, fields)
            }
            _ => bail!(DATATYPE_MISMATCH, "cannot assign non-composite value to a record variable"),
        }
    }

    /// A row of a result into what INTO names. None: there was no row, which makes all NULL.
    pub(super) fn row_into(
        &mut self,
        into: &Into,
        columns: &Columns,
        row: Option<Vec<Datum>>,
    ) -> Result<()> {
        let list = match into {
            Into::Record(id) => return self.row_into_record(*id, columns, row),
            Into::List(list) => list,
        };
        let is_row = row.is_some();
        let mut fields = row.unwrap_or_default().into_iter();
        for (at, scalar) in list.iter().enumerate() {
            let value = match columns.get(at) {
                Some(c) => Value {
                    value: fields.next().unwrap_or_default(),
                    ty: if is_row {
                        TypeRef { oid: c.type_oid, typmod: c.typmod }
                    } else {
                        UNKNOWN
                    },
                },
                None => Value { value: Datum::Null, ty: UNKNOWN },
            };
            self.assign_scalar(scalar, value)?;
        }
        Ok(())
    }

    fn row_into_record(
        &mut self,
        id: VarId,
        columns: &Columns,
        row: Option<Vec<Datum>>,
    ) -> Result<()> {
        let variable = self.frame.variable(id);
        let (ty, kind) = (variable.ty, variable.kind.clone());
        let fields = row.unwrap_or_else(|| vec![Datum::Null; columns.len()]);
        let TypeKind::Row { columns: wanted, checked } = kind else {
            let type_oid = oids::RECORD;
            let row = RecordValue { type_oid, columns: Arc::clone(columns), fields };
            self.frame.set(id, Datum::Record(Arc::new(row)));
            return Ok(());
        };
        let mut fields = fields.into_iter();
        let mut cast = Vec::with_capacity(wanted.len());
        for (at, column) in wanted.iter().enumerate() {
            let from = columns.get(at).map(|c| TypeRef { oid: c.type_oid, typmod: c.typmod });
            let value = fields.next().unwrap_or_default();
            let to = TypeRef { oid: column.type_oid, typmod: column.typmod };
            cast.push(self.cast(Value { value, ty: from.unwrap_or(UNKNOWN) }, to)?);
        }
        let base = ty.base();
        let row = RecordValue { type_oid: base.oid, columns: wanted, fields: cast };
        let mut value = Datum::Record(Arc::new(row));
        if checked {
            value = self.host.cast(value, base, ty)?;
        }
        self.frame.set(id, value);
        Ok(())
    }

    pub(super) fn assign_scalar(&mut self, scalar: &Scalar, value: Value) -> Result<()> {
        match &scalar.field {
            None => self.assign(scalar.variable, value),
            Some(field) => self.assign_within(scalar.variable, &[Place::Field(field)], value, None),
        }
    }

    /// Assigns to a part of a variable. What the variable holds is taken out of it meanwhile, so that it need not be copied.
    fn assign_within(
        &mut self,
        id: VarId,
        places: &[Place<'_>],
        value: Value,
        site: Option<&Site>,
    ) -> Result<()> {
        let within = |error: base::Error| match site {
            Some(site) => error.within(site.context()),
            None => error,
        };
        let variable = self.frame.variable(id);
        let (ty, kind) = (variable.ty, variable.kind.clone());
        let shape = self.frame.columns(id);
        if matches!(kind, TypeKind::AnyRow) && shape.is_none() {
            return Err(within(not_assigned(&variable.name)));
        }
        if let (Some(columns), Place::Field(name)) = (&shape, &places[0])
            && !columns.iter().any(|c| *c.name == **name)
        {
            let record = &variable.name;
            let error = err!(UNDEFINED_COLUMN, "record \"{record}\" has no field \"{name}\"");
            return Err(within(error));
        }
        let of = Of { variable: Arc::clone(&variable.name), site };
        let (value, places) = self.prepared(ty, shape.as_ref(), places, value, &of)?;
        let checked = matches!(
            kind,
            TypeKind::Scalar { checked: true } | TypeKind::Row { checked: true, .. }
        );
        let mut held = self.frame.take(id);
        if !checked {
            let done = put(&mut held, shape.as_ref(), &places, value);
            self.frame.set(id, held);
            return done;
        }
        let mut new = held.clone();
        self.frame.set(id, held);
        put(&mut new, shape.as_ref(), &places, value)?;
        let new = self.host.cast(new, ty.base(), ty)?;
        self.frame.set(id, new);
        Ok(())
    }

    /// The value as the place wants it, and the way to the place with all that had to be asked of the host.
    fn prepared(
        &mut self,
        ty: TypeRef,
        shape: Option<&Columns>,
        places: &[Place<'_>],
        value: Value,
        of: &Of<'_>,
    ) -> Result<(Datum, Vec<Way>)> {
        let mut ways = Vec::new();
        let (mut ty, mut shape) = (ty.base(), shape.cloned());
        let mut at = 0;
        while let Some(place) = places.get(at) {
            if let Place::Field(name) = place {
                let columns = match shape.take() {
                    Some(columns) => columns,
                    None => match self.host.kind_of(ty)? {
                        TypeKind::Row { columns, .. } => columns,
                        _ => return Err(of.no_field(ty, name)),
                    },
                };
                let Some(field) = columns.iter().position(|c| *c.name == **name) else {
                    return Err(of.no_such_field(ty, name));
                };
                let column = &columns[field];
                let inner = TypeRef { oid: column.type_oid, typmod: column.typmod };
                ways.push(Way::Field { columns: Arc::clone(&columns), at: field, row: ty.oid });
                ty = inner;
                at += 1;
                continue;
            }
            let run = places[at..].iter().take_while(|p| !matches!(p, Place::Field(_))).count();
            let subscripts = &places[at..at + run];
            at += run;
            let base = ty.base();
            if base.oid == oids::JSONB {
                ways.push(Way::Json(self.json_path(subscripts)?));
                ty = base;
                continue;
            }
            let Some(element) = types::element_type(base.oid) else {
                return Err(of.no_elements(ty));
            };
            ty = self.array_way(&mut ways, subscripts, base, element)?;
        }
        let slice_of_null = matches!(ways.last(), Some(Way::Slice { .. })) && value.value.is_null();
        let value = match of.site {
            _ if slice_of_null => Datum::Null,
            Some(site) => {
                let given = value.clone();
                self.cast(value, ty).map_err(|error| self.of_constant(error, site, given, ty))?
            }
            None => self.cast(value, ty)?,
        };
        Ok((value, ways))
    }

    /// The type that is assigned there.
    fn array_way(
        &mut self,
        ways: &mut Vec<Way>,
        subscripts: &[Place<'_>],
        array: TypeRef,
        element: base::Oid,
    ) -> Result<TypeRef> {
        if !subscripts.iter().any(|p| matches!(p, Place::Slice(..))) {
            let mut at = Vec::with_capacity(subscripts.len());
            for place in subscripts {
                if let Place::Element(value) = place {
                    at.push(self.subscript(value)?);
                }
            }
            ways.push(Way::Element { at, element });
            return Ok(TypeRef { oid: element, typmod: array.typmod });
        }
        let mut bounds = Vec::with_capacity(subscripts.len());
        for place in subscripts {
            bounds.push(match place {
                Place::Slice(low, high) => {
                    let low = low.as_ref().map(|v| self.subscript(v)).transpose()?;
                    let high = high.as_ref().map(|v| self.subscript(v)).transpose()?;
                    (low, high)
                }
                // Among slices a number is where one ends that begins with 1.
                Place::Element(value) => (Some(1), Some(self.subscript(value)?)),
                Place::Field(_) => (None, None),
            });
        }
        ways.push(Way::Slice { bounds, element });
        Ok(array)
    }

    fn subscript(&mut self, value: &Value) -> Result<i32> {
        match self.cast(value.clone(), INT4)? {
            Datum::Int4(n) => Ok(n),
            _ => bail!(NULL_VALUE_NOT_ALLOWED, "array subscript in assignment must not be null"),
        }
    }

    fn json_path(&mut self, subscripts: &[Place<'_>]) -> Result<Vec<json::assign::Subscript>> {
        let mut path = Vec::with_capacity(subscripts.len());
        for place in subscripts {
            let Place::Element(value) = place else {
                bail!(DATATYPE_MISMATCH, "jsonb subscript does not support slices");
            };
            let number = matches!(value.ty.base().oid, oids::INT4 | oids::INT2 | oids::INT8);
            if number && let Datum::Int4(n) = self.cast(value.clone(), INT4)? {
                path.push(json::assign::Subscript::Number(n));
                continue;
            }
            match self.cast(value.clone(), TEXT)? {
                Datum::Text(name) => path.push(json::assign::Subscript::Name(name.to_string())),
                _ => {
                    bail!(NULL_VALUE_NOT_ALLOWED, "jsonb subscript in assignment must not be null")
                }
            }
        }
        Ok(path)
    }
}

/// What an assignment to a part is about, for errors.
struct Of<'a> {
    variable: Arc<str>,
    site: Option<&'a Site>,
}

impl Of<'_> {
    /// An error that PostgreSQL finds when it analyses the assignment.
    fn wrong(&self, state: SqlState, text: String) -> base::Error {
        let mut error = SqlError::new(state, text);
        if let Some(site) = self.site {
            error.internal_position = Some(1);
            error.internal_query = Some(site.text.to_string());
        }
        error.into()
    }

    fn no_field(&self, ty: TypeRef, name: &str) -> base::Error {
        let (ty, column) = (types::format_type(ty.oid, -1), &self.variable);
        let text = format!(
            "cannot assign to field \"{name}\" of column \"{column}\" because its type {ty} is not a composite type"
        );
        self.wrong(SqlState::DATATYPE_MISMATCH, text)
    }

    fn no_such_field(&self, ty: TypeRef, name: &str) -> base::Error {
        let (ty, column) = (types::format_type(ty.oid, -1), &self.variable);
        let text = format!(
            "cannot assign to field \"{name}\" of column \"{column}\" because there is no such column in data type {ty}"
        );
        self.wrong(SqlState::UNDEFINED_COLUMN, text)
    }

    fn no_elements(&self, ty: TypeRef) -> base::Error {
        let ty = types::format_type(ty.oid, -1);
        let text = format!("cannot subscript type {ty} because it does not support subscripting");
        self.wrong(SqlState::DATATYPE_MISMATCH, text)
    }
}

/// A step to a place, all known of it.
enum Way {
    Field { columns: Columns, at: usize, row: base::Oid },
    Element { at: Vec<i32>, element: base::Oid },
    Slice { bounds: Vec<(Option<i32>, Option<i32>)>, element: base::Oid },
    Json(Vec<json::assign::Subscript>),
}

/// Puts `value` in the place within `held` that `ways` lead to. An error leaves `held` as it was.
fn put(held: &mut Datum, shape: Option<&Columns>, ways: &[Way], value: Datum) -> Result<()> {
    let Some((first, rest)) = ways.split_first() else {
        *held = value;
        return Ok(());
    };
    match first {
        Way::Field { columns, at, row } => {
            if let Datum::Record(record) = held {
                let record = Arc::make_mut(record);
                if record.fields.len() <= *at {
                    record.fields.resize(*at + 1, Datum::Null);
                }
                return put(&mut record.fields[*at], None, rest, value);
            }
            let columns = Arc::clone(shape.unwrap_or(columns));
            let mut fields = vec![Datum::Null; columns.len().max(*at + 1)];
            put(&mut fields[*at], None, rest, value)?;
            *held = Datum::Record(Arc::new(RecordValue { type_oid: *row, columns, fields }));
        }
        Way::Element { at, element } => {
            if let Datum::Array(array) = held {
                return put_element(Arc::make_mut(array), at, rest, value);
            }
            let mut array = empty(*element);
            put_element(&mut array, at, rest, value)?;
            *held = Datum::Array(Arc::new(array));
        }
        Way::Slice { bounds, element } => {
            // NULL changes nothing, but for what is NULL itself.
            if value.is_null() && held.is_null() {
                *held = Datum::Array(Arc::new(empty(*element)));
            } else if let Datum::Array(source) = value {
                *held = match held {
                    Datum::Array(array) => types::array::assign_slice(array, bounds, &source)?,
                    _ => types::array::assign_slice(&empty(*element), bounds, &source)?,
                };
            }
        }
        Way::Json(path) => *held = json::assign::assign(held, path, &value)?,
    }
    Ok(())
}

fn put_element(array: &mut ArrayValue, at: &[i32], rest: &[Way], value: Datum) -> Result<()> {
    let mut value = value;
    if !rest.is_empty() {
        let mut inner = types::array::subscript(array, at);
        put(&mut inner, None, rest, value)?;
        value = inner;
    }
    types::array::put(array, at, value)
}

fn empty(element_type: base::Oid) -> ArrayValue {
    ArrayValue { element_type, dims: Vec::new(), elements: Vec::new() }
}
