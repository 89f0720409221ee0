"""Files are written whole or not at all, and only where a regular file may be."""

import os

import pytest

from fxpasses.files import replacing, write_text


def test_a_pipe_is_left_as_it_is(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="no regular file"):
        write_text(tmp_path / "pipe", "text")
    assert (tmp_path / "pipe").is_fifo()


def test_a_link_is_followed(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_text(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "text"


def test_a_loop_of_links_is_refused(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(OSError, match="no regular file"):
        write_text(tmp_path / "loop", "text")


def fail_half_way(path):
    with replacing(path) as temporary:
        temporary.write_text("new")
        raise ZeroDivisionError


def test_an_error_leaves_the_old_file(tmp_path):
    write_text(tmp_path / "file", "old")
    with pytest.raises(ZeroDivisionError):
        fail_half_way(tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "old"
