//! OVER and WINDOW.

use super::coerce::can_coerce;
use super::{Analyser, Clause};
use crate::parse::ast::{self, Bound, Loc, Over, SortBy, WindowSpec};
use crate::query::{FrameBound, FrameExclude, FrameMode, WindowDefinition, WindowFrame};
use base::{Oid, Result, SqlError, SqlState, err};
use expr::tree::SortKey;
use expr::{Expr, TypeRef};
use types::facts::CastContext;
use types::oids::*;

impl Analyser<'_> {
    /// The WINDOW clause.
    pub fn window_clause(&mut self, list: &[(String, WindowSpec)]) -> Result<()> {
        for (wname, spec) in list {
            if self.level().window_names.iter().any(|(n, _)| n == wname) {
                let e = err!(WINDOWING_ERROR, "window \"{wname}\" is already defined");
                return self.at(spec.loc, e);
            }
            let mut w = self.window(spec)?;
            w.name = Some(wname.clone());
            let level = self.level();
            level.windows.push(w);
            let index = level.windows.len() - 1;
            level.window_names.push((wname.clone(), index));
        }
        Ok(())
    }

    fn named(&mut self, wname: &str, loc: Loc) -> Result<usize> {
        let hit = self.level().window_names.iter().find(|(n, _)| n == wname).map(|(_, i)| *i);
        match hit {
            Some(i) => Ok(i),
            None => {
                let e = err!(UNDEFINED_OBJECT, "window \"{wname}\" does not exist");
                self.at(loc, e)
            }
        }
    }

    /// The index of the window that OVER means.
    pub fn over(&mut self, over: &Over) -> Result<usize> {
        let spec = match over {
            Over::Name(n, loc) => return self.named(n, *loc),
            Over::Spec(spec) => spec,
        };
        let clause = self.enter(Clause::Window);
        let w = self.window(spec)?;
        self.enter(clause);
        let text = |w: &WindowDefinition| {
            format!("{:?}{:?}{:?}{:?}", w.base, w.partition_by, w.order_by, w.frame)
        };
        let wanted = text(&w);
        let same = |o: &WindowDefinition| text(o) == wanted;
        let windows = &mut self.level().windows;
        if let Some(i) = windows.iter().position(same) {
            return Ok(i);
        }
        windows.push(w);
        Ok(windows.len() - 1)
    }

    /// Sort keys that are plain expressions.
    pub fn sort_keys(&mut self, list: &[SortBy]) -> Result<Vec<SortKey>> {
        let mut out = Vec::new();
        for s in list {
            let expr = self.known_expr(&s.expr)?;
            self.must_be_sortable(expr.ty().oid, s.expr.loc)?;
            self.ordering_operator(s)?;
            if out.iter().any(|k: &SortKey| k.expr == expr) {
                continue;
            }
            out.push(SortKey {
                expr,
                descending: s.descending,
                nulls_first: s.nulls_first.unwrap_or(s.descending),
            });
        }
        Ok(out)
    }

    fn window(&mut self, spec: &WindowSpec) -> Result<WindowDefinition> {
        let saved = self.enter(Clause::Window);
        let mut partition_by = Vec::new();
        for e in &spec.partition_by {
            let x = self.known_expr(e)?;
            self.must_be_equatable(x.ty().oid, e.loc)?;
            partition_by.push(x);
        }
        let mut order_by = self.sort_keys(&spec.order_by)?;
        let ordered_as_base = spec.base.is_some() && order_by.is_empty();
        if let Some(base) = &spec.base {
            let i = self.named(base, spec.loc)?;
            let b = self.level().windows[i].clone();
            if !partition_by.is_empty() {
                let e = err!(
                    WINDOWING_ERROR,
                    "cannot override PARTITION BY clause of window \"{base}\""
                );
                return self.at(spec.loc, e);
            }
            if !order_by.is_empty() && !b.order_by.is_empty() {
                let e =
                    err!(WINDOWING_ERROR, "cannot override ORDER BY clause of window \"{base}\"");
                return self.at(spec.loc, e);
            }
            if b.frame.explicit {
                let text = format!("cannot copy window \"{base}\" because it has a frame clause");
                let mut e = SqlError::new(SqlState::WINDOWING_ERROR, text);
                if spec.order_by.is_empty() && spec.frame.is_none() {
                    e = e.hint("Omit the parentheses in this OVER clause.");
                }
                return self.at(spec.loc, e.into());
            }
            partition_by = b.partition_by;
            if order_by.is_empty() {
                order_by = b.order_by;
            }
        }
        let frame = self.window_frame(spec, &order_by)?;
        self.enter(saved);
        Ok(WindowDefinition {
            name: None,
            base: spec.base.clone(),
            ordered_as_base,
            partition_by,
            order_by,
            frame,
        })
    }

    fn window_frame(&mut self, spec: &WindowSpec, order_by: &[SortKey]) -> Result<WindowFrame> {
        let Some(f) = &spec.frame else {
            return Ok(WindowFrame {
                mode: FrameMode::Range,
                start: FrameBound::UnboundedPreceding,
                end: FrameBound::CurrentRow,
                exclude: FrameExclude::NoOthers,
                explicit: false,
                open: false,
            });
        };
        let offset = |b: &Bound| matches!(b, Bound::Preceding(_) | Bound::Following(_));
        let has_offset = offset(&f.start) || f.end.as_ref().is_some_and(offset);
        if f.mode == FrameMode::Range && has_offset && order_by.len() != 1 {
            let e = err!(
                WINDOWING_ERROR,
                "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column"
            );
            return self.at(spec.loc, e);
        }
        if f.mode == FrameMode::Groups && order_by.is_empty() {
            let e = err!(WINDOWING_ERROR, "GROUPS mode requires an ORDER BY clause");
            return self.at(spec.loc, e);
        }
        let key = order_by.first().map(|k| k.expr.ty().oid);
        let start = self.bound(&f.start, f.mode, key, f.loc)?;
        let end = match &f.end {
            Some(b) => self.bound(b, f.mode, key, f.loc)?,
            None => FrameBound::CurrentRow,
        };
        Ok(WindowFrame {
            mode: f.mode,
            start,
            end,
            exclude: f.exclude,
            explicit: true,
            open: f.end.is_none(),
        })
    }

    fn bound(
        &mut self,
        b: &Bound,
        mode: FrameMode,
        key: Option<Oid>,
        loc: Loc,
    ) -> Result<FrameBound> {
        Ok(match b {
            Bound::UnboundedPreceding => FrameBound::UnboundedPreceding,
            Bound::UnboundedFollowing => FrameBound::UnboundedFollowing,
            Bound::CurrentRow => FrameBound::CurrentRow,
            Bound::Preceding(e) => FrameBound::Preceding(self.offset(e, mode, key, loc)?),
            Bound::Following(e) => FrameBound::Following(self.offset(e, mode, key, loc)?),
        })
    }

    fn offset(
        &mut self,
        e: &ast::Expr,
        mode: FrameMode,
        key: Option<Oid>,
        loc: Loc,
    ) -> Result<Expr> {
        let what = match mode {
            FrameMode::Rows => "ROWS",
            FrameMode::Groups => "GROUPS",
            FrameMode::Range => "RANGE",
        };
        let saved = self.enter(Clause::Frame(mode));
        let x = self.expr(e)?;
        self.enter(saved);
        self.must_be_fixed(&x, what, e.loc)?;
        if mode != FrameMode::Range {
            return self.bigint(x, what, e.loc);
        }
        let key = key.unwrap_or(UNKNOWN);
        let to = match key {
            DATE | TIME | TIMETZ | TIMESTAMP | TIMESTAMPTZ | INTERVAL => INTERVAL,
            INT2 | INT4 | INT8 | NUMERIC => key,
            FLOAT4 | FLOAT8 => FLOAT8,
            _ => {
                let e2 = err!(
                    FEATURE_NOT_SUPPORTED,
                    "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {}",
                    self.type_name_of(key)
                );
                return self.at(loc, e2);
            }
        };
        // An integer key takes any integer offset; wider ones are kept as they are.
        let from = x.ty().oid;
        let integers = [INT2, INT4, INT8];
        let to = if integers.contains(&to) && integers.contains(&from) { from } else { to };
        if !can_coerce(from, to, CastContext::Implicit) {
            let e2 = err!(
                FEATURE_NOT_SUPPORTED,
                "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {} and \
                 offset type {}",
                self.type_name_of(key),
                self.type_name_of(from)
            );
            return self.at(e.loc, e2);
        }
        self.coerce(x, TypeRef::of(to), CastContext::Implicit, false, e.loc)
    }
}
