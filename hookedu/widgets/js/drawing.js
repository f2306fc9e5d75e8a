// Numbers as pictures, for the widgets with a canvas. Which colours and which range is decided in Python.

/** @typedef {{map: "viridis" | "cividis" | "RdBu_r", low: number, high: number}} Scale */

// matplotlib's own 256 colours, as bytes of red, green and blue in base64; tests/javascript compares them.
const TABLES = {
  viridis:
    "RAFURAJVRANXRQVYRQZaRQhbRglcRgteRgxfRg5hRw9iRxFjRxJlRxRmRxVnRxZpRxhqSBlrSBpsSBxuSB1vSB5wSCBxSCFySCJzSCN0RyV1RyZ2Ryd3Ryh4Ryp5Ryt6Ryx7Ri18Ri98RjB9RjF+RTJ/RTR/RTWARTaBRDeBRDmCQzqDQzuDQzyEQj2EQj6FQkCFQUGGQUKGQEOHQESHP0WHP0eIPkiIPkmJPUqJPUuJPUyJPE2KPE6KO1CKO1GKOlKLOlOLOVSLOVWLOFaLOFeMN1iMN1mMNlqMNluMNVyMNV2MNF6NNF+NM2CNM2GNMmKNMmONMWSNMWWNMWaNMGeNMGiNL2mNL2qNLmuOLmyOLm2OLW6OLW+OLHCOLHGOLHKOK3OOK3SOKnWOKnaOKneOKXiOKXmOKHqOKHqOKHuOJ3yOJ32OJ36OJn+OJoCOJoGOJYKOJYONJISNJIWNJIaNI4eNI4iNI4mNIomNIoqNIouNIYyNIY2MIY6MII+MIJCMIJGMH5KMH5OLH5SLH5WLH5aLHpeKHpiKHpmKHpmKHpqJHpuJHpyJHp2IHp6IHp+IHqCHH6GHH6KGH6OGIKSFIKWFIaaFIaeEIqeEI6iDI6mCJKqCJauBJqyBJ62AKK5/Ka9/KrB+K7F9LLF9LrJ8L7N7MLR6MrV6M7Z5Nbd4Nrh3OLl2Obl2O7p1Pbt0PrxzQL1yQr5xRL5wRb9vR8BuScFtS8JsTcJrT8NpUcRoU8VnVcZmV8ZlWcdkW8hiXslhYMlgYspfZMtdZ8xcacxba81Zbc5YcM5Wcs9VdNBUd9BSedFRfNJPftJOgdNMg9NLhtRJiNVHi9VGjdZEkNZDktdBldc/l9g+mtg8ndk6n9k4oto3pdo1p9szqtsyrdwwr9wust0std0rt90put4nvd4mv98kwt8ixd8hx+AfyuAezeAdz+Ec0uEb1OEa1+IZ2uIY3OIY3+MY4eMY5OMY5+QZ6eQZ7OQa7uUb8eUc8+Ue9uYf+OYh+uYi/eck",
  cividis:
    "ACJNACNPACNQACRSACVUACZVACZXACdZAChbAChcACleACpgACpiACtkACxmACxnAC1pAC5rAC9tAC9vADBwADBwADFwADFwBDJwCDNwCzNwDjRwETVvFDZvFjZvGDdvGjhvHDhuHTluHzpuITtuIjtuJDxuJT1tJz1tKD5tKj9tKz9tLEBtLkFsL0JsMEJsMUNsMkRsNERsNUVsNkZsN0ZsOEdsOUhsOkhrO0lrPUprPktrP0trQExrQU1rQk1rQ05rRE9rRU9rRlBrR1FrSFFrSVJrSlNrS1RsTFRsTVVsTlZsTlZsT1dsUFhsUVhsUllsU1psVFpsVVttVlxtV11tWF1tWV5tWV9tWl9tW2BuXGFuXWFuXmJuX2NuYGRuYWRvYWVvYmZvY2ZvZGdvZWhwZmlwZ2lwaGpwaGtxaWtxamxxa21xbG1ybW5ybm9ybnBzb3BzcHFzcXJzcnN0c3N0dHR1dHV1dXV1dnZ2d3d2eHh2eXh3eXl3enp3e3t3fHt4fXx4fn14f314gH54gX94goB4g4B4hIF4hYJ4hYN4hoN4h4R4iIV4iYZ4ioZ4i4d4jIh4jYl4jol4j4p3kIt3kYx3kox3k413lI53lY93lo93l5B2mJF2mZJ2mpN2m5N2nJR2nZV1npZ1n5Z1oJd1oZh0opl0o5p0pJp0pZtzppxzp51zqJ5zqZ5yqp9yq6ByrKFxraJxrqJxr6NwsKRwsaVwsqZvs6ZvtKdvtahutqlut6ptuKttuattuqxsu61svK5rva9rvrBqv7BqwbFpwrJpw7NoxLRoxbVnxrVnx7ZmyLdlybhlyrlky7pkzLtjzbxizrxiz71h0L5g0r9g08Bf1MFe1cJe1sNd18Nc2MRb2cVa2sZa28dZ3MhY3slX38pW4MtV4cxU4sxT481S5M5R5c9Q5tBP6NFO6dJN6tNM69RL7NVK7dZI7tdH79hG8dlE8tpD89pC9NtA9dw/9t09+N47+d86+uA4++E2/eI0/eMz/eU0/eY2/ec3",
  RdBu_r:
    "BTBhBjJjBzRmCDZpCThsCjpvCzxyDD51DUB4DkN7D0V+EUeBEkmEE0uHFE2KFU+NFlGQF1STGFaVGViYGlqbHFyeHV6hHmCkH2KnIGSqIWasI2itJGquJWyvJ22wKG+wKXGxK3OyLHWzLXa0L3i1MHq2MXy3M324NH+5NYG5N4O6OIS7OYa8O4i9PIq+PYu/P43AQI/BQZHCQ5PDRpTESZbFTJjGT5rHUpzIVZ7JWKDKW6LLXqTMYabNZajOaKrPa6zQbq7RcbDSdLLTd7TVerbWfbjXgLrYhLzZh77aisDbjcLckMTdk8XelcbfmMjfmsngncrhn8vhos3ipM7jp8/kqdDkq9LlrtPmsNTms9XntdfouNjoutnpvdrqv9zrwt3rxN7sx9/tyeHtzOLuzuPv0eXw0uXw0+bw1efw1ufx2Ojx2enx2+nx3Ory3uvy3+zy4ezz4u3z5O7z5e7z5+/06PD06vH06/H07fL17vP18PP18fT28/X29PX29vb29/b29/X09/Ty9/Pw+PLu+PDs+O/q+O7o+e3n+ezl+evj+erh+enf+ujd+ufb+uXZ+uTX++PW++LU++HS++DQ/N/O/N7M/N3K/NzI/dvH/NjE/NbB+9S++9K8+9C5+s62+sy0+sqx+ceu+cWr+cOp+MGm+L+j+L2h97ue97mb97eZ9rSW9rKT9bCQ9a6O9ayL9KqI9KiG9KaD86OA8qB+8Z5875t67ph47ZZ27JN065By6o5w6Itu54hs5oVq5YNo5IBl4n1j4Xth4Hhf33Vd3nJb3XBZ221X2mpV2WhT2GVR12JP1mBN1F1L01pK0VdJ0FRHzlFGzU9FzExDyklCyUZBx0M/xkA+xT48wzs7wjg6wDU4vzI3vjA2vC00uyozuScyuCQxtiEvtR8utBwtshkrsBcqrRYqqhUppxQppBMooRIonhEnmxAnmRAnlg8mkw4mkA0ljQwligskhwokhAkjgQgjfgciewYieAUhdQQhcgMgbwIgbAEfaQAfZwAf",
};
// What is no number, as in the still pictures: magenta, orange and cyan.
const NAN = [255, 0, 255];
const POSITIVE = [255, 140, 0];
const NEGATIVE = [0, 220, 255];

/**
 * The colours of a map: 256 times red, green, blue.
 *
 * @param {keyof typeof TABLES} map
 */
export function table(map) {
  return Uint8Array.from(atob(TABLES[map]), (letter) => letter.charCodeAt(0));
}

/**
 * Turn numbers into pixels.
 *
 * @param {ArrayLike<number>} values row by row
 * @param {number} width of a row
 * @param {Scale} scale
 */
export function pixels(values, width, { map, low, high }) {
  const colours = table(map);
  const image = new ImageData(width, values.length / width);
  const factor = high > low ? 256 / (high - low) : 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    const at = Math.min(Math.max(Math.floor((value - low) * factor), 0), 255) * 3;
    const odd = Number.isFinite(value) ? null : value > 0 ? POSITIVE : value < 0 ? NEGATIVE : NAN;
    for (let c = 0; c < 3; c++) image.data[4 * i + c] = odd ? odd[c] : colours[at + c];
    image.data[4 * i + 3] = 255;
  }
  return image;
}

/**
 * Size a canvas in pixels of the page, with as many dots as the screen has, and return its context in pixels of the page.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
export function fit(canvas, width, height) {
  const density = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(height * density);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.setTransform(density, 0, 0, density, 0, 0);
  return context;
}

/**
 * Pixels as something that can be drawn many times, whole or in parts.
 *
 * @param {ImageData} image
 */
export function sheet(image) {
  const canvas = new OffscreenCanvas(image.width, image.height);
  /** @type {OffscreenCanvasRenderingContext2D} */ (canvas.getContext("2d")).putImageData(image, 0, 0);
  return canvas;
}

/**
 * Draw pixels enlarged, each as a sharp square.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {ImageData} image
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {number} height
 */
export function enlarge(context, image, x, y, width, height) {
  context.imageSmoothingEnabled = false;
  context.drawImage(sheet(image), x, y, width, height);
}

/**
 * Offer a canvas as a PNG file.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {string} name of the file
 */
export function save(canvas, name) {
  const link = document.createElement("a");
  link.href = canvas.toDataURL("image/png");
  link.download = name;
  link.click();
}
