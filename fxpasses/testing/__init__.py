"""Tests that find out whether a pass is right, and whether its tests would notice if it were not.

    from fxpasses.testing.soundness import check_pass_sound

    check_pass_sound("replace-masked-copy-with-where", programs=200)

needs the extra `test`: `pip install "fxpasses[test]"`. Importing `fxpasses` imports none of it.
"""
