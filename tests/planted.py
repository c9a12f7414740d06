"""Plant known bugs, one at a time, in a copy of the sources, and see that a
program finds each of them: proof that it can fail.

A bug is a patch; its first line says what it breaks.
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

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
    status, output = look(command, cwd)
    if status != 0:
        end = "\n".join(output.strip().split("\n")[-15:])
        raise Failed(f"{what} failed:\n{end}")


def look(command, cwd):
    """Run what may find something: its exit status and its output."""
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True,
                          errors="replace")
    return done.returncode, done.stdout


def copy(work, folders, files=(), before="", after="", options=()):
    """Set up, in work/build, a project of copies: folders are built in their
    order, between the lines of before and after; files are only copied;
    options are for meson setup.
    """
    for folder in folders:
        shutil.copytree(ROOT / folder, work / folder)
    for file in files:
        (work / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, work / file)
    (work / "meson.build").write_text(
        PROJECT + before + "inc = include_directories('server')\n" +
        "".join(f"subdir('{folder}')\n" for folder in folders) + after)
    run(["meson", "setup", "build", *options], work, "meson setup")


class Subject:
    """What is damaged and who is to notice.

    damaged is the folder that the patches change; the rest is as in copy. A
    class of its own says, of a patch or of None where no bug is planted:
    programs(patch), what to build, and look(work, patch): what was caught, and
    who should have caught the bug and did not.
    """

    def __init__(self, folders, damaged, files=(), before="", after=""):
        self.folders = folders
        self.damaged = damaged
        self.files = files
        self.before = before
        self.after = after

    def build(self, work, patch):
        run(["ninja", "-C", "build", *self.programs(patch)], work,
            "compiling")

    def try_patch(self, work, patch):
        """One line of what came of it, and whether all went well."""
        backup = work / "backup"
        damaged = work / self.damaged
        shutil.copytree(damaged, backup)
        try:
            run(["patch", "-p1", "--force", "--fuzz=0",
                 "--no-backup-if-mismatch", "-i", str(patch)], work,
                "applying the patch to the source as it is now")
            self.build(work, patch)
            caught, missed = self.look(work, patch)
        except Failed as error:
            return f"FAILED: {error}", False
        finally:
            # Fresh times, so that the next build sees every file that changed.
            for clean in backup.rglob("*"):
                file = damaged / clean.relative_to(backup)
                if clean.is_file() and clean.read_bytes() != file.read_bytes():
                    shutil.copyfile(clean, file)
            shutil.rmtree(backup)
        text = [f"caught by {found}" for found in caught]
        if missed:
            what = patch.read_text().split("\n", 1)[0]
            text += [f"NOT CAUGHT by {name}: {what}" for name in missed]
        return "\n  ".join(text), not missed

    def prove(self, patches):
        """The exit status: 0 if every bug was caught."""
        good = 0
        with tempfile.TemporaryDirectory(prefix="twinlog-mutate-") as name:
            work = pathlib.Path(name)
            try:
                copy(work, self.folders, self.files, self.before, self.after)
                self.build(work, None)
                found, _ = self.look(work, None)
                if found:
                    raise Failed(f"without any bug planted: {found}")
            except Failed as error:
                print(f"mutate: {error}", file=sys.stderr)
                return 1
            for patch in patches:
                began = time.monotonic()
                text, caught = self.try_patch(work, patch)
                good += caught
                print(f"{patch.stem} ({time.monotonic() - began:.0f} s):\n"
                      f"  {text}", flush=True)
        print(f"mutations {len(patches)}, caught {good}")
        return 0 if good == len(patches) else 1


def choose(parser, folder, names):
    """The patches of those names in the folder; all, where none is named."""
    known = {patch.stem: patch for patch in
             sorted((ROOT / folder).glob("*.patch"))}
    for name in names:
        if name not in known:
            parser.error(f"there is no bug {name}")
    if not known:
        parser.error(f"no patches in {folder}")
    return [known[name] for name in names or known]
