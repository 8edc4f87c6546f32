//! What changes the rate of faults: two arms that differ in one thing, and what their difference says.

use crate::plan::{LockKind, Workload};

/// What is known of an arm when arms are contrasted.
#[derive(Clone, Debug, PartialEq)]
pub struct ArmFacts {
    /// Its name.
    pub name: String,
    /// Its image carries host code of the Tile IR compiler.
    pub tile: bool,
    /// Hash of its image.
    pub image: String,
    /// What its children do.
    pub workload: Workload,
}

/// How the rates of two arms relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The first arm's is higher, surely.
    FirstHigher,
    /// The second arm's is higher, surely.
    SecondHigher,
    /// They are alike, surely.
    Alike,
    /// Neither is sure.
    Open,
}

/// Two arms and how they relate.
#[derive(Clone, Debug, PartialEq)]
pub struct Contrast {
    /// The first arm.
    pub first: ArmFacts,
    /// The other.
    pub second: ArmFacts,
    /// How their rates relate.
    pub relation: Relation,
    /// Faults of each.
    pub faults: (u64, u64),
    /// The anytime-valid p-value of the test.
    pub p_value: f64,
}

impl Contrast {
    /// The arm with the higher rate and the one with the lower, where that is sure.
    fn ordered(&self) -> Option<(&ArmFacts, &ArmFacts, u64)> {
        match self.relation {
            Relation::FirstHigher => Some((&self.first, &self.second, self.faults.1)),
            Relation::SecondHigher => Some((&self.second, &self.first, self.faults.0)),
            Relation::Alike | Relation::Open => None,
        }
    }

    /// What it says, in the fewest words: `Tile IR only`, `any image`, `only unlocked`, `only with several threads`.
    pub fn says(&self) -> Option<String> {
        let images = self.first.tile != self.second.tile && self.first.workload == self.second.workload;
        let Some((higher, lower, lower_faults)) = self.ordered() else {
            let both = self.faults.0 > 0 && self.faults.1 > 0;
            return (images && both).then(|| "any image".to_owned());
        };
        let only = if lower_faults == 0 { "only" } else { "mostly" };
        let same_image = higher.image == lower.image;
        let (h, l) = (&higher.workload, &lower.workload);
        if images {
            let kind = if higher.tile { "Tile IR" } else { "regular image" };
            return Some(format!("{kind} {only}"));
        }
        match () {
            () if !same_image => Some(format!("{only} {}", higher.name)),
            () if h.lock == LockKind::None && l.lock != LockKind::None => Some(format!("{only} unlocked")),
            () if h.threads > 1 && l.threads == 1 => Some(format!("{only} with several threads")),
            () => Some(format!("{only} {}", higher.name)),
        }
    }

    /// The line of evidence that it gives.
    pub fn line(&self) -> String {
        let (a, b) = (&self.first.name, &self.second.name);
        let counts = format!("{} faults in {a}, {} in {b}", self.faults.0, self.faults.1);
        match (self.says(), self.relation) {
            (Some(says), Relation::Open | Relation::Alike) => format!("{says}: {counts}"),
            (Some(says), _) => format!("{says}: {counts}, p = {:.2e} at any time", self.p_value),
            (None, _) => format!("no contrast is sure yet: {counts}, p = {:.2}", self.p_value),
        }
    }

    /// Whether a difference is sure.
    pub fn is_sure(&self) -> bool {
        self.ordered().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arm(name: &str, tile: bool, workload: Workload) -> ArmFacts {
        ArmFacts { name: name.into(), tile, image: name.into(), workload }
    }

    fn contrast(first: ArmFacts, second: ArmFacts, relation: Relation, faults: (u64, u64)) -> Contrast {
        Contrast { first, second, relation, faults, p_value: 0.001 }
    }

    #[test]
    fn a_contrast_says_what_the_fault_follows() {
        let plain = Workload::default;
        let (tile, regular) = (arm("tile", true, plain()), arm("ptx", false, plain()));
        let only = contrast(tile.clone(), regular.clone(), Relation::FirstHigher, (9, 0));
        assert_eq!(only.says().unwrap(), "Tile IR only");
        let mostly = contrast(regular.clone(), tile.clone(), Relation::SecondHigher, (1, 30));
        assert_eq!(mostly.says().unwrap(), "Tile IR mostly");
        assert_eq!(contrast(tile.clone(), regular, Relation::Open, (5, 4)).says().unwrap(), "any image");
        let locked = Workload { lock: LockKind::Unload, ..plain() };
        let lock = ArmFacts { image: "tile".into(), ..arm("locked", true, locked) };
        assert_eq!(contrast(tile.clone(), lock, Relation::FirstHigher, (9, 0)).says().unwrap(), "only unlocked");
        let one = ArmFacts { image: "tile".into(), ..arm("one", true, Workload { threads: 1, ..plain() }) };
        assert_eq!(contrast(tile, one, Relation::FirstHigher, (9, 0)).says().unwrap(), "only with several threads");
    }
}
