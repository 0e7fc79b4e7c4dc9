//! The application's half holds the stubs and no other MPI, on the newest releases. `own_place.rs` has the same on Open MPI 4.1 and MPICH 4.0.

use stillpoint_tests::halves::{hold_only_stubs, hold_only_stubs_in_python};
use stillpoint_tests::mpis::Mpi;
use stillpoint_tests::place;

#[test]
fn the_applications_half_holds_no_other_mpi() {
    let mpis = place::target().join("mpis");
    for (name, library) in [("openmpi", "libmpi.so.40"), ("mpich", "libmpi.so.12")] {
        let on = Mpi::named(&mpis, name).unwrap_or_else(|failed| panic!("{failed}"));
        let library = mpis.join(name).join("lib").join(library);
        hold_only_stubs("blocking_collectives", &on)
            .unwrap_or_else(|failed| panic!("C on {name}: {failed}"));
        hold_only_stubs_in_python(&library.display().to_string(), &on)
            .unwrap_or_else(|failed| panic!("Python on {name}: {failed}"));
    }
}
