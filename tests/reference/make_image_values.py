#!/usr/bin/env python3
"""Writes tests/reference/image_values.json: small pictures as PNG and JPEG, their pixels, and what
Pillow's bilinear filter makes of them, for the tests to equal.

    python3 tests/reference/make_image_values.py

Needs Pillow. By hand only.
"""
import base64
import io
import json
import pathlib

import PIL
from PIL import Image

TARGET = pathlib.Path(__file__).parent / "image_values.json"


def picture(width, height, mode):
    channels = {"L": 1, "RGB": 3, "RGBA": 4}[mode]
    values = bytes((x * 7 + y * y * 3 + c * 50 + (x * y) % 11 * 9) % 256
                   for y in range(height) for x in range(width) for c in range(channels))
    return Image.frombytes(mode, (width, height), values)


def encoded(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return base64.b64encode(out.getvalue()).decode()


def case(name, image, kind, shown, **options):
    return {"name": name, "width": image.width, "height": image.height, "file": encoded(image, kind, **options),
            "channels": len(shown.getbands()), "pixels": list(shown.tobytes())}


def main():
    grey, color, alpha = picture(13, 9, "L"), picture(11, 7, "RGB"), picture(6, 5, "RGBA")
    palette = picture(12, 8, "RGB").convert("P", palette=Image.Palette.ADAPTIVE, colors=16)
    files = [case("grey", grey, "PNG", grey), case("color", color, "PNG", color),
             case("alpha", alpha, "PNG", alpha.convert("RGB")), case("palette", palette, "PNG", palette.convert("RGB"))]
    for name, image in (("jpeg grey", picture(16, 16, "L")), ("jpeg color", picture(24, 16, "RGB"))):
        file = encoded(image, "JPEG", quality=92)
        again = Image.open(io.BytesIO(base64.b64decode(file)))
        files.append({"name": name, "width": image.width, "height": image.height, "file": file,
                      "channels": len(again.getbands()), "pixels": list(again.tobytes())})
    resized = []
    for mode, size, to in (("L", (13, 9), (26, 18)), ("L", (28, 28), (16, 16)), ("RGB", (20, 30), (7, 5)),
                           ("RGB", (5, 4), (12, 3)), ("L", (40, 3), (9, 11)), ("L", (1, 1), (4, 4)), ("L", (8, 8), (8, 5))):
        image = picture(*size, mode)
        resized.append({"channels": len(mode), "from": size, "pixels": list(image.tobytes()), "to": to,
                        "result": list(image.resize(to, Image.Resampling.BILINEAR).tobytes())})
    luma = picture(9, 9, "RGB")
    values = {"made_with": {"Pillow": PIL.__version__}, "files": files, "resized": resized,
              "luma": {"width": 9, "height": 9, "pixels": list(luma.tobytes()), "result": list(luma.convert("L").tobytes())}}
    TARGET.write_text(json.dumps(values) + "\n")


if __name__ == "__main__":
    main()
