//! Privileges that are granted on by those who may: what goes when the right to is taken back, and that it does not come back to who gave it.

use crate::acl::AclItem;
use base::{Result, SqlError, SqlState};

/// One object's privileges while they are changed.
pub(super) struct Chain<'a> {
    /// The object's owner, who may grant whatever is said.
    pub owner: &'a str,
    /// The roles whose privileges a role has, itself among them.
    pub roles_of: &'a dyn Fn(&str) -> Result<Vec<String>>,
}

/// What is granted or revoked, of whom, by whom.
#[derive(Clone, Copy)]
pub(super) struct Change<'a> {
    pub grantee: &'a str,
    pub grantor: &'a str,
    pub bits: u32,
    /// GRANT: with grant option; REVOKE: that alone.
    pub option: bool,
}

impl Chain<'_> {
    /// GRANT.
    ///
    /// # Errors
    /// `0LP01` when the right to grant would come back to who gave it; I/O.
    pub fn grant(&self, items: &mut Vec<AclItem>, change: Change<'_>) -> Result<()> {
        let Change { grantee, grantor, bits, option } = change;
        if bits == 0 {
            return Ok(());
        }
        if option && !self.may_grant_without(items, change)? {
            let text = "grant options cannot be granted back to your own grantor";
            return Err(SqlError::new(SqlState(*b"0LP01"), text).into());
        }
        let extra = if option { bits } else { 0 };
        match items.iter_mut().find(|i| i.grantee == grantee && i.grantor == grantor) {
            Some(item) => {
                item.privileges |= bits;
                item.grantable |= extra;
            }
            None => items.push(AclItem {
                grantee: grantee.to_owned(),
                privileges: bits,
                grantable: extra,
                grantor: grantor.to_owned(),
            }),
        }
        Ok(())
    }

    /// REVOKE: with `cascade` what the grantee can grant no more goes from those whom he has granted it.
    ///
    /// # Errors
    /// `2BP01` when there is such and it may not go; I/O.
    pub fn revoke(
        &self,
        items: &mut Vec<AclItem>,
        change: Change<'_>,
        cascade: bool,
    ) -> Result<()> {
        let Change { grantee, grantor, bits, option } = change;
        let mut lost = 0;
        for item in items.iter_mut().filter(|i| i.grantee == grantee && i.grantor == grantor) {
            lost |= item.grantable & bits;
            item.grantable &= !bits;
            if !option {
                item.privileges &= !bits;
            }
        }
        items.retain(|i| i.privileges != 0);
        self.dependents(items, grantee, lost, cascade)
    }

    /// Takes back what `grantor` has granted of `lost`, as far as he may grant it no more.
    fn dependents(
        &self,
        items: &mut Vec<AclItem>,
        grantor: &str,
        lost: u32,
        cascade: bool,
    ) -> Result<()> {
        let lost = lost & !self.grantable(items, grantor)?;
        let by_him = |i: &&AclItem| i.grantor == grantor && i.privileges & lost != 0;
        while let Some(item) = items.iter().find(by_him) {
            if !cascade {
                let e = SqlError::new(
                    SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                    "dependent privileges exist",
                );
                return Err(e.hint("Use CASCADE to revoke them too.").into());
            }
            let grantee = item.grantee.clone();
            let change = Change { grantee: &grantee, grantor, bits: lost, option: false };
            self.revoke(items, change, true)?;
        }
        Ok(())
    }

    /// What a role may grant.
    fn grantable(&self, items: &[AclItem], role: &str) -> Result<u32> {
        let roles = (self.roles_of)(role)?;
        if roles.iter().any(|r| r == self.owner) {
            return Ok(u32::MAX);
        }
        let his = items.iter().filter(|i| roles.contains(&i.grantee));
        Ok(his.fold(0, |bits, i| bits | i.grantable))
    }

    /// Whether the grantor has the right to grant from elsewhere than the grantee.
    fn may_grant_without(&self, items: &[AclItem], change: Change<'_>) -> Result<bool> {
        let mut items = items.to_vec();
        let from = |i: &&AclItem| i.grantee == change.grantee && i.grantable != 0;
        while let Some(item) = items.iter().find(from) {
            let (grantor, bits) = (item.grantor.clone(), item.grantable);
            let zap = Change { grantee: change.grantee, grantor: &grantor, bits, option: true };
            self.revoke(&mut items, zap, true)?;
        }
        Ok(change.bits & !self.grantable(&items, change.grantor)? == 0)
    }
}
