// A map of up to 100,000 points: they are written into the picture's pixels, which needs no library, no WebGL, no eval.
"use strict";

const DENSE = 20000;  // points; with more, the map shows how many lie on a pixel
const OPAQUE = Array.from({ length: 16 }, (_, count) => Math.round(255 * (1 - 0.4 ** count)));

class PointMap {
  constructor(canvas, { choose, hover = () => {}, select = () => {}, moved = () => {} }) {
    Object.assign(this, { hover, select, viewed: moved });
    this.mode = "move";                 // what dragging does: "move", "box", "lasso"
    this.path = [];                     // places of the line that is being drawn around rows
    this.faded = null;                  // 1 for each point that is not selected
    this.faint = 0;                     // the colour of such points
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.choose = choose;
    this.places = new Float32Array(0);  // x, y of each point, in units of the map
    this.colours = new Uint32Array(0);  // of each point, as pixels have them
    this.marks = [];                    // [point, colour, shape, radius]
    this.halo = "#fff";                 // around marks
    this.fingers = new Map();
    new ResizeObserver(() => this.draw()).observe(canvas);
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.fingers.set(event.pointerId, event);
      this.moved = this.fingers.size > 1 ? Infinity : 0;
      this.drawing = this.fingers.size === 1 && (event.shiftKey ? "lasso" : this.mode === "move" ? null : this.mode);
      this.path = this.drawing ? [[event.offsetX, event.offsetY]] : [];
      this.hover(-1);
    });
    canvas.addEventListener("pointermove", (event) => this.drag(event));
    canvas.addEventListener("pointermove", (event) => {
      if (event.pointerType === "mouse" && !event.buttons) this.hover(this.nearest(event.offsetX, event.offsetY, 12), event.offsetX, event.offsetY);
    });
    canvas.addEventListener("pointerleave", () => this.hover(-1));
    for (const name of ["pointerup", "pointercancel"]) {
      canvas.addEventListener(name, (event) => {
        const alone = this.fingers.size === 1 && this.fingers.delete(event.pointerId);
        this.fingers.delete(event.pointerId);
        const path = this.path;
        this.path = [];
        if (name === "pointerup" && alone && this.moved < 5) this.pick(event.offsetX, event.offsetY, 16);
        else if (name === "pointerup" && path.length > 2) this.select(this.inside(path));
        this.draw();
      });
    }
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  set(places) {
    this.places = places;
    const range = (axis) => {
      let low = Infinity, high = -Infinity;
      for (let i = axis; i < places.length; i += 2) { low = Math.min(low, places[i]); high = Math.max(high, places[i]); }
      return [low, high];
    };
    const [left, right] = range(0), [bottom, top] = range(1);
    this.home = { x: (left + right) / 2, y: (bottom + top) / 2, width: (right - left) || 1, height: (top - bottom) || 1 };
    this.reset();
  }

  reset() { this.view = { x: this.home?.x ?? 0, y: this.home?.y ?? 0, scale: 1 }; this.draw(); }

  scale() {  // CSS pixels for one unit
    const { clientWidth: w, clientHeight: h } = this.canvas;
    return this.view.scale * 0.92 * Math.min(w / this.home.width, h / this.home.height);
  }

  at(point) {
    const s = this.scale();
    return [this.canvas.clientWidth / 2 + (this.places[2 * point] - this.view.x) * s,
      this.canvas.clientHeight / 2 - (this.places[2 * point + 1] - this.view.y) * s];
  }

  zoom(factor, x, y) {
    const before = this.scale(), dx = x - this.canvas.clientWidth / 2, dy = y - this.canvas.clientHeight / 2;
    this.view.scale = Math.min(1e4, Math.max(0.2, this.view.scale * factor));
    const change = 1 / before - 1 / this.scale();
    this.view.x += dx * change;
    this.view.y -= dy * change;
    this.viewed();
    this.draw(true);
  }

  pan(dx, dy) {
    const s = this.scale();
    this.view.x -= dx / s;
    this.view.y += dy / s;
    this.viewed();
    this.draw(true);
  }

  drag(event) {
    const before = this.fingers.get(event.pointerId);
    if (!before) return;
    const dx = event.offsetX - before.offsetX, dy = event.offsetY - before.offsetY;
    const other = [...this.fingers.values()].find((finger) => finger.pointerId !== event.pointerId);
    this.fingers.set(event.pointerId, event);
    this.moved += Math.abs(dx) + Math.abs(dy);
    if (this.drawing && !other) {
      const [x, y] = this.path[0], [right, bottom] = [event.offsetX, event.offsetY];
      if (this.drawing === "box") this.path = [[x, y], [right, y], [right, bottom], [x, bottom]];
      else this.path.push([right, bottom]);
      this.draw();
    } else if (other) {
      this.path = [];
      const distance = (one) => Math.hypot(one.offsetX - other.offsetX, one.offsetY - other.offsetY) || 1;
      this.zoom(distance(event) / distance(before), other.offsetX, other.offsetY);
    } else if (this.moved >= 5) this.pan(dx, dy);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { clientWidth: w, clientHeight: h } = this.canvas;
    const moves = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    if (moves[event.key]) this.pan(...moves[event.key]);
    else if (event.key === "+" || event.key === "=") this.zoom(1.4, w / 2, h / 2);
    else if (event.key === "-") this.zoom(1 / 1.4, w / 2, h / 2);
    else if (event.key === "0") this.reset();
    else if (event.key === "Enter") this.pick(w / 2, h / 2, Infinity);
    else return;
    event.preventDefault();
  }

  pick(x, y, reach) {
    const best = this.nearest(x, y, reach);
    if (best >= 0) this.choose(best);
  }

  inside(path) {  // the points inside a closed line of places of the canvas
    const found = [], low = [0, 1].map((i) => Math.min(...path.map((at) => at[i]))), high = [0, 1].map((i) => Math.max(...path.map((at) => at[i])));
    for (let point = 0; point < this.places.length / 2; point++) {
      const [x, y] = this.at(point);
      if (x < low[0] || y < low[1] || x > high[0] || y > high[1]) continue;
      let within = false;
      for (let i = 0, j = path.length - 1; i < path.length; j = i++) {
        const [[x1, y1], [x2, y2]] = [path[i], path[j]];
        if (y1 > y !== y2 > y && x < (x2 - x1) * (y - y1) / (y2 - y1) + x1) within = !within;
      }
      if (within) found.push(point);
    }
    return found;
  }

  nearest(x, y, reach) {  // the point nearest to a place of the canvas, -1 if none is within reach
    if (!this.home) return -1;
    const s = this.scale(), { places } = this;
    const left = this.view.x + (x - this.canvas.clientWidth / 2) / s, top = this.view.y - (y - this.canvas.clientHeight / 2) / s;
    let best = -1, least = (reach / s) ** 2;
    for (let point = 0; point < places.length / 2; point++) {
      if (this.faded?.[point]) continue;
      const far = (places[2 * point] - left) ** 2 + (places[2 * point + 1] - top) ** 2;
      if (far < least) { least = far; best = point; }
    }
    return best;
  }

  draw(moving = false) {  // while it moves, many points are one pixel each, so that all can be drawn for every frame
    clearTimeout(this.rest);
    if (moving && this.places.length / 2 > DENSE) this.rest = setTimeout(() => this.draw(), 150);
    this.moving = moving;
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.paint(); });
  }

  paint() {
    const { canvas, context, places, colours } = this, ratio = devicePixelRatio || 1;
    const w = Math.round(canvas.clientWidth * ratio), h = Math.round(canvas.clientHeight * ratio), n = places.length / 2;
    if (!w || !h || !this.home) return;
    if (canvas.width !== w || canvas.height !== h) {
      [canvas.width, canvas.height] = [w, h];
      this.image = context.createImageData(w, h);
    }
    const pixels = new Uint32Array(this.image.data.buffer).fill(0);
    const radius = this.moving && n > DENSE ? 0.9 : ratio * Math.min(5, (n > 30000 ? 0.9 : n > 5000 ? 1.6 : n > 1000 ? 2.6 : 4) * Math.sqrt(Math.min(this.view.scale, 4)));
    const disc = [], reach = Math.ceil(radius);
    for (let y = -reach; y <= reach; y++) for (let x = -reach; x <= reach; x++) if (x * x + y * y <= radius * radius) disc.push(y * w + x);
    const s = this.scale() * ratio, left = w / 2 - this.view.x * s, top = h / 2 + this.view.y * s;
    const place = (i) => {  // of a point among the pixels, -1 outside
      const x = Math.round(left + places[2 * i] * s), y = Math.round(top - places[2 * i + 1] * s);
      return x < reach || y < reach || x >= w - reach || y >= h - reach ? -1 : y * w + x;
    };
    if (this.faded) for (let i = 0; i < n; i++) if (this.faded[i]) {
      const middle = place(i);
      if (middle >= 0) for (const step of disc) pixels[middle + step] = this.faint;
    }
    if (n > DENSE) this.shade(pixels, disc, left, top, s, w, h, reach);
    else for (let i = 0; i < n; i++) if (!this.faded?.[i]) {
      const middle = place(i), colour = colours[i];
      if (middle >= 0) for (const step of disc) pixels[middle + step] = colour;
    }
    context.putImageData(this.image, 0, 0);
    if (this.path.length > 1) {
      context.beginPath();
      for (const [x, y] of this.path) context.lineTo(x * ratio, y * ratio);
      context.closePath();
      for (const [style, width, dash] of [[this.halo, 4, []], [this.line, 2, [6, 4]]]) {
        context.setLineDash(dash.map((one) => one * ratio));
        context.strokeStyle = style;
        context.lineWidth = width * ratio;
        context.stroke();
      }
      context.setLineDash([]);
    }
    this.name(context, ratio);
    for (const [point, colour, shape, size] of this.marks) {
      const [x, y] = this.at(point).map((place) => place * ratio), r = size * ratio;
      context.beginPath();
      if (shape === "lost") [[0, -1.25], [1.15, 0.75], [-1.15, 0.75]].forEach(([dx, dy]) => context.lineTo(x + dx * r, y + dy * r));
      else if (shape === "gained") context.rect(x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r);
      else context.arc(x, y, r, 0, 2 * Math.PI);
      context.closePath();
      for (const [style, width] of [[this.halo, 5], [colour, 2.5]]) {
        context.strokeStyle = style;
        context.lineWidth = width * ratio;
        context.stroke();
      }
    }
  }

  name(context, ratio) {  // each group's name at the medians of its points, of those that are not faded, where there is room
    const of = [this.groups, this.places, this.faded];
    if (!this.named || of.some((one, i) => one !== this.named.of[i])) {
      const points = (this.groups?.names ?? []).map(() => []), middle = (at) => at.sort()[at.length >> 1];
      if (points.length) this.groups.of.forEach((group, i) => { if (!this.faded?.[i]) points[group]?.push(i); });
      this.named = { of, groups: points.map((some, group) => ({ group, size: some.length,
        at: [0, 1].map((axis) => middle(Float32Array.from(some, (i) => this.places[2 * i + axis]))) }))
        .filter((one) => one.size).sort((one, other) => other.size - one.size) };
    }
    Object.assign(context, { font: `600 ${13 * ratio}px system-ui, sans-serif`, textAlign: "center", lineWidth: 4 * ratio, strokeStyle: this.halo, fillStyle: this.line, lineJoin: "round" });
    const s = this.scale(), taken = [];
    for (const { group, at } of this.named.groups) {
      const x = (this.canvas.clientWidth / 2 + (at[0] - this.view.x) * s) * ratio, y = (this.canvas.clientHeight / 2 - (at[1] - this.view.y) * s) * ratio;
      const text = this.groups.names[group].slice(0, 24), half = context.measureText(text).width / 2 + 3 * ratio, high = 9 * ratio;
      if (taken.some(([left, top, wide]) => Math.abs(left - x) < wide + half && Math.abs(top - y) < 2 * high)) continue;
      taken.push([x, y, half]);
      for (const write of ["strokeText", "fillText"]) context[write](text, x, y);
    }
  }

  shade(pixels, disc, left, top, s, w, h, reach) {  // many points: the mean of their colours, and how many lie on a pixel
    const { colours, faded, places } = this, n = colours.length, size = pixels.length;
    // two sums of 16 bits in each number: red and blue, green and the count, which is at most 255
    if (this.redBlue?.length !== size) {
      [this.redBlue, this.greenCount, this.touched] = [new Uint32Array(size), new Uint32Array(size), new Int32Array(size)];
    }
    const { redBlue, greenCount, touched } = this, one = disc.length === 1;
    let found = 0;
    for (let i = 0; i < n; i++) {
      if (faded !== null && faded[i]) continue;
      const x = (left + places[2 * i] * s + 0.5) | 0, y = (top - places[2 * i + 1] * s + 0.5) | 0;
      if (x < reach || y < reach || x >= w - reach || y >= h - reach) continue;
      const middle = y * w + x, colour = colours[i], more = colour & 0xff00ff, other = ((colour >>> 8) & 255) | 0x10000;
      for (let k = 0; k < (one ? 1 : disc.length); k++) {
        const at = one ? middle : middle + disc[k], before = greenCount[at];
        if (before >= 0xff0000) continue;
        if (before === 0) touched[found++] = at;
        redBlue[at] += more;
        greenCount[at] = before + other;
      }
    }
    for (let k = 0; k < found; k++) {
      const at = touched[k], count = greenCount[at] >>> 16, sum = redBlue[at];
      pixels[at] = (OPAQUE[count < 15 ? count : 15] << 24) | ((sum >>> 16) / count << 16) | ((greenCount[at] & 0xffff) / count << 8) | ((sum & 0xffff) / count);
      redBlue[at] = greenCount[at] = 0;
    }
  }
}
