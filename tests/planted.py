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
    """Run what has to succeed."""
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Failed(f"{what} failed:\n{done.stdout}")


def look(command, cwd):
    """Run what may find something: its exit status and its output."""
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True,
                          errors="replace")
    return done.returncode, done.stdout


def copy(work, folders, files=(), extra="", options=()):
    """Set up, in work/build, a project of copies: folders are built in their
    order, after the lines of extra; files are only copied; options are for
    meson setup.
    """
    for folder in folders:
        shutil.copytree(ROOT / folder, work / folder)
    for file in files:
        (work / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, work / file)
    (work / "meson.build").write_text(
        PROJECT + extra + "inc = include_directories('server')\n" +
        "".join(f"subdir('{folder}')\n" for folder in folders))
    run(["meson", "setup", "build", *options], work, "meson setup")


class Subject:
    """What is damaged and who is to notice.

    damaged is the folder that the patches change, which program is built of;
    look(work, patch) runs it: what was found, or None. The patch is None
    where no bug is planted. The rest is as in copy.
    """

    def __init__(self, folders, damaged, program, look, extra="", files=()):
        self.folders = folders
        self.damaged = damaged
        self.program = program
        self.look = look
        self.extra = extra
        self.files = files

    def build(self, work):
        run(["ninja", "-C", "build", self.program], work, "the build")

    def try_patch(self, work, patch):
        backup = work / "clean"
        damaged = work / self.damaged
        shutil.copytree(damaged, backup)
        try:
            run(["patch", "-p1", "--force", "--no-backup-if-mismatch", "-i",
                 str(patch)], work, f"patching with {patch.name}")
            self.build(work)
            return self.look(work, patch)
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
                copy(work, self.folders, self.files, self.extra)
                self.build(work)
                found = self.look(work, None)
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


def choose(parser, folders, names):
    """The patches of those names in the folders; all, where none is named."""
    known = {}
    for folder in folders:
        for patch in sorted((ROOT / folder).glob("*.patch")):
            known[patch.stem] = patch
    for name in names:
        if name not in known:
            parser.error(f"there is no bug {name}")
    if not known:
        parser.error(f"no patches in {', '.join(folders)}")
    return [known[name] for name in names or known]
