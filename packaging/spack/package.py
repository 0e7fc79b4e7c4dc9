"""Builds Stillpoint from its sources, with Spack 1.0 or later. There is no address to fetch them from: they are given, `spack develop --path SOURCES stillpoint@0.1.0`, or `spack dev-build`."""

from spack_repo.builtin.build_systems.generic import Package

from spack.package import *


class Stillpoint(Package):
    """Transparent checkpointing of MPI jobs: they are suspended at any moment and carried on elsewhere, with not a digit changed."""

    license("MIT OR Apache-2.0")

    version("0.1.0")

    depends_on("c", type="build")
    depends_on("rust@1.95:", type="build")
    # mpi.h is read with libclang.
    depends_on("llvm +clang", type="build")
    depends_on("pkgconfig", type="build")
    # The lower half for Open MPI is linked to it. Other libraries are found when a job starts.
    depends_on("openmpi@4.1")

    requires("target=x86_64:")
    requires("platform=linux")

    # What is installed beside the command, and the crates that it is made of.
    beside = [
        "stillpoint-lower-openmpi",
        "stillpoint-lower-abi",
        "stillpoint-lower-mpich",
        "stillpoint-gpu",
        "libstillpoint_upper_openmpi.so",
        "libstillpoint_upper_abi.so",
        "libstillpoint_upper_mpich.so",
        "libstillpoint_preload.so",
    ]
    crates = [
        "stillpoint",
        "stillpoint-lower",
        "stillpoint-lower-abi",
        "stillpoint-lower-mpich",
        "stillpoint_upper_openmpi",
        "stillpoint_upper_abi",
        "stillpoint_upper_mpich",
        "stillpoint_preload",
        "stillpoint-gpu",
    ]

    def setup_build_environment(self, env):
        env.set("LIBCLANG_PATH", self.spec["llvm"].prefix.lib)

    def install(self, spec, prefix):
        arguments = ["build", "--release", "--locked", "--target-dir", "target"]
        for crate in self.crates:
            arguments += ["-p", crate]
        which("cargo", required=True)(*arguments)
        built = join_path(self.stage.source_path, "target", "release")
        mkdirp(prefix.bin, prefix.lib.stillpoint)
        install(join_path(built, "stillpoint"), prefix.bin)
        for name in self.beside:
            install(join_path(built, name), prefix.lib.stillpoint)
        command = Executable(prefix.bin.stillpoint)
        mkdirp(prefix.share.man.man1)
        command("man", prefix.share.man.man1)
        for shell, place, name in (
            ("bash", prefix.share.join("bash-completion").completions, "stillpoint"),
            ("zsh", prefix.share.zsh.join("site-functions"), "_stillpoint"),
            ("fish", prefix.share.fish.vendor_completions.d, "stillpoint.fish"),
        ):
            mkdirp(place)
            with open(join_path(place, name), "w") as file:
                command("completions", shell, output=file)

    @run_after("install")
    def names_its_contracts(self):
        shown = Executable(self.prefix.bin.stillpoint)("--version", output=str)
        if f"stillpoint {self.version}" not in shown or "unknown" in shown:
            raise InstallError(f"what was installed is not whole: {shown}")
