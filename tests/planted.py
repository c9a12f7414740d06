"""Plant known bugs, one at a time, in a copy of the sources, and see that a
program finds each of them: proof that it can fail.

A bug is a patch; its first line says what it breaks.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]

# The smallest project; the folders that are built follow.
PROJECT = """project('mutation', 'c', default_options: ['c_std=gnu11',
  'warning_level=2', 'buildtype=debugoptimized'])
add_project_arguments('-D_GNU_SOURCE', '-Wno-unused-parameter', language: 'c')
threads = dependency('threads')
xxhash = dependency('libxxhash')
"""


class Failed(Exception):
    pass


def run(command, cwd, what):
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Failed(f"{what} failed:\n{done.stdout}")


class Subject:
    """What is damaged and who is to notice.

    folders are copied and, in this order, built, after the lines of extra;
    files are only copied; damaged is the one that the patches change; program is the target;
    look(work, clean) runs it: what was found, or None.
    """

    def __init__(self, folders, damaged, program, patches, look, extra="",
                 files=()):
        self.folders = folders
        self.damaged = damaged
        self.program = program
        self.patches = ROOT / patches
        self.look = look
        self.extra = extra
        self.files = files

    def choose(self, parser, names):
        patches = sorted(self.patches.glob("*.patch"))
        if names:
            patches = [self.patches / f"{name}.patch" for name in names]
        for patch in patches:
            if not patch.is_file():
                parser.error(f"there is no {patch}")
        if not patches:
            parser.error(f"no patches in {self.patches}")
        return patches

    def build(self, work):
        run(["ninja", "-C", "build", self.program], work, "the build")

    def prepare(self, work):
        for folder in self.folders:
            shutil.copytree(ROOT / folder, work / folder)
        for file in self.files:
            (work / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / file, work / file)
        (work / "meson.build").write_text(
            PROJECT + self.extra + "inc = include_directories('server')\n" +
            "".join(f"subdir('{folder}')\n" for folder in self.folders))
        run(["meson", "setup", "build"], work, "meson setup")
        self.build(work)

    def try_patch(self, work, patch):
        backup = work / "clean"
        damaged = work / self.damaged
        shutil.copytree(damaged, backup)
        try:
            run(["patch", "-p1", "--force", "--no-backup-if-mismatch", "-i",
                 str(patch)], work, f"patching with {patch.name}")
            self.build(work)
            return self.look(work, False)
        finally:
            # Fresh times, so that the next build sees every file that changed.
            for clean in backup.iterdir():
                if clean.read_bytes() != (damaged / clean.name).read_bytes():
                    shutil.copyfile(clean, damaged / clean.name)
            shutil.rmtree(backup)

    def prove(self, patches):
        """The exit status: 0 if every bug was caught."""
        missed = 0
        with tempfile.TemporaryDirectory(prefix="twinlog-mutate-") as name:
            work = pathlib.Path(name)
            try:
                self.prepare(work)
                found = self.look(work, True)
                if found:
                    raise Failed(f"without any bug planted: {found}")
                for patch in patches:
                    found = self.try_patch(work, patch)
                    if found:
                        print(f"{patch.stem}: caught by {found}", flush=True)
                    else:
                        missed += 1
                        what = patch.read_text().split("\n", 1)[0]
                        print(f"{patch.stem}: NOT CAUGHT: {what}", flush=True)
            except Failed as error:
                print(f"mutate: {error}", file=sys.stderr)
                return 1
        print(f"mutations {len(patches)}, caught {len(patches) - missed}")
        return 1 if missed else 0
