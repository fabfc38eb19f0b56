use crate::support::World;
use base::sync::Arc;
use disk::Disk;
use disk::sim::SimDisk;
use vacuum::VacuumOptions;

/// Power is lost at every few operations of a vacuum whose pages do not fit in the pool; after recovery heap and indexes agree and no row
/// is lost, and another vacuum ends the work.
#[test]
fn a_crash_anywhere_in_a_vacuum() {
    const FRAMES: usize = 16;
    let mut crashes = 0;
    for n in (0..).step_by(23) {
        let disk = SimDisk::new(n);
        let sim: Arc<dyn Disk> = disk.clone();
        let w = World::on(sim, 2, FRAMES, buffer::Persistence::Permanent);
        w.load(4500, b"a value of some length, so that there are pages enough");
        w.change(|k| k % 3 == 0, None);
        w.change(|k| k % 3 == 1, Some(b"another value of some length"));
        disk.sync_dir("base/5").unwrap();
        disk.crash_at(n);
        let options = VacuumOptions { freeze: n % 2 == 0, truncate: false, ..Default::default() };
        let ended = w.vacuum_unchecked(&options).is_ok();
        // The end of the transaction is asynchronous to the data: nothing says that it came through.
        {
            let seed = n;
            let after: Arc<dyn Disk> = disk.after_crash(seed);
            let again = World::recover(after, 2, 512);
            again.check();
            assert_eq!(again.count(), 3000, "crash at {n}, seed {seed}");
            again.vacuum(&VacuumOptions::default());
            assert_eq!(again.count(), 3000);
        }
        if ended {
            break;
        }
        crashes += 1;
    }
    assert!(crashes >= 2, "{crashes}");
}
