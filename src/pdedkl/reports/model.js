// Mean and standard deviation of u from a packed posterior; see packing.py for the formula and the layout.
// Runs in a page and, for tests, in any other engine: nothing here touches a document.
(function (root) {
  "use strict";
  const BLOCK = 8;

  // Chebyshev coefficients, in 2t − 1 with t = 2/(2 + x), of log(erfc(x) e^{x²} / t) for x ≥ 0; accurate to 2e-15.
  const ERFC = [
    -0.6513268598908546, 0.6419697923564901, 0.01947647320418593, -0.009561514786808889, -0.0009465953444817848,
    0.0003668394978526379, 4.252332480734422e-5, -2.027857811258471e-5, -1.6242900046581355e-6, 1.303655835496187e-6,
    1.5626441842719884e-8, -8.523809627902778e-8, 6.529054679127455e-9, 5.059343552993312e-9, -9.913638709946326e-10,
    -2.273651644735253e-10, 9.646826448772572e-11, 2.3941737481436575e-12, -6.8861227831007455e-12,
    8.941558604647071e-13, 3.132161197072492e-13, -1.127586912730294e-13, 6.972200594645983e-16,
    6.693534615465069e-15, -1.1945999744966684e-15,
  ];

  function erfc(x) {
    const z = Math.abs(x), t = 2 / (2 + z), y = 4 * t - 2;
    let a = 0, b = 0;
    for (let j = ERFC.length - 1; j > 0; j--) [a, b] = [y * a - b + ERFC[j], a];
    const tail = t * Math.exp(-z * z + ERFC[0] + 0.5 * y * a - b);
    return x < 0 ? 2 - tail : tail;
  }

  const ACTIVATIONS = {
    gelu: (y) => 0.5 * y * erfc(-Math.SQRT1_2 * y),
    tanh: Math.tanh,
    silu: (y) => y / (1 + Math.exp(-y)),
    sine: Math.sin,
    square: (y) => 0.5 * y * y,
  };

  // A profile writes φ, φ' and φ'' at s into f. For the squared exponential they are ±e^{-s}; it is handled
  // separately below.
  const f = new Float64Array(3);
  const BESSEL = [[1], [1, 1], [3, 3, 1], [15, 15, 6, 1], [105, 105, 45, 10, 1]];
  const PROFILES = {
    "squared-exponential": () => null,
    "rational-quadratic": ({ alpha }) => (s) => {
      const base = 1 + s / alpha;
      f[0] = Math.pow(base, -alpha);
      f[1] = -f[0] / base;
      f[2] = -(alpha + 1) / (alpha * base) * f[1];
    },
    matern: ({ p }) => {
      const rate = 2 * p + 1, size = BESSEL[p][0];
      return (s) => {
        const x = Math.sqrt(2 * rate * s), e = Math.exp(-x) / size;
        for (let k = 0; k < 3; k++) {
          const coefficients = BESSEL[p - k];
          let total = 0;
          for (let i = p - k; i >= 0; i--) total = total * x + coefficients[i];
          f[k] = (k === 0 ? 1 : k === 1 ? -rate : rate * rate) * e * total;
        }
      };
    },
  };

  function decode(base64) {
    const text = atob(base64.trim()), bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    return new Float64Array(bytes.buffer);
  }

  function dense(layer, x, view) {
    const [rows, columns] = layer.matrix.shape, W = view(layer.matrix), y = new Float64Array(rows);
    if (layer.offset) y.set(view(layer.offset));
    for (let i = 0; i < rows; i++) {
      let total = 0;
      for (let j = 0, at = i * columns; j < columns; j++) total += W[at + j] * x[j];
      y[i] += total;
    }
    return y;
  }

  function chebyshev(degree, x) {
    let a = 1, b = x;
    for (let k = 1; k < degree; k++) [a, b] = [b, 2 * x * b - a];
    return b;
  }

  function embed(h, x, view) {
    switch (h.kind) {
      case "identity": return x;
      case "affine": return dense(h.layer, x, view);
      case "bottleneck": return embed(h.network, dense(h.layer, x, view), view);
      case "residual": {
        const y = embed(h.network, x, view), straight = dense(h.layer, x, view);
        return y.map((value, i) => value + straight[i]);
      }
      case "invariants": {
        const y = new Float64Array(h.degrees.length);
        let at = 0;
        for (const { inputs, even } of h.orbits) {
          const step = even ? 2 : 1;
          for (let degree = step; at < y.length && h.degrees[at] === degree; degree += step, at++) {
            for (const i of inputs) y[at] += chebyshev(degree, x[i]) / Math.sqrt(inputs.length);
          }
        }
        return y;
      }
      case "mlp": {
        const last = h.layers.length - 1, act = ACTIVATIONS[h.activation];
        for (let i = 0; i < last; i++) x = dense(h.layers[i], x, view).map(act);
        return dense(h.layers[last], x, view);
      }
    }
    throw new Error("unknown embedding " + h.kind);
  }

  // The rows of one observation, or of one of the places at which its operator evaluates u, for one group of latent
  // coordinates: arrays and the steps between their rows. They are stored from row `from` on, and their covariances are
  // added to the output from row `to` on.
  function readPart(part, { to, from, n }, k, view) {
    const zeros = { values: new Float64Array(k), step: 0 };
    const read = (ref) => ref ? { values: view(ref), step: ref.shape[0] > 1 ? ref.shape[1] : 0 } : zeros;
    const G = read(part.diffusion), trace = new Float64Array(n);
    for (let j = 0; j < n; j++) {
      for (let a = 0, at = j * G.step; a < k; a++) {
        trace[j] += part.diffusion ? G.values[at + (part.full ? a * (a + 3) / 2 : a)] : 0;
      }
    }
    return { to, from, n, c: read(part.c), drift: read(part.drift), G, trace, full: part.full,
      order: part.diffusion ? 2 : part.drift ? 1 : 0 };
  }

  function createModel(data, base64) {
    const buffer = decode(base64), n = data.rows, dim = data.centre.length;
    const view = (ref) => buffer.subarray(ref.at, ref.at + ref.shape.reduce((a, b) => a * b, 1));
    const alpha = view(data.alpha);
    const components = data.components.map((component) => ({
      embedding: component.embedding,
      shares: component.shares,
      lengthscale: component.lengthscale,
      multiplier: component.multiplier,
      variance: component.terms.reduce((total, term) => total + term.variance, 0),
      terms: component.terms.map((term) => {
        const k = term.members.length;
        return { ...term, k, profile: PROFILES[component.profile.kind](component.profile), z: view(term.z),
          rotation: term.rotation && view(term.rotation),
          parts: term.parts.map((part, i) => readPart(part, data.parts[i], k, view)) };
      }),
    }));

    function scaled(q) {
      const x = new Float64Array(dim);
      for (let i = 0; i < dim; i++) x[i] = data.scale[i] * (q[i] - data.centre[i]);
      return x;
    }

    function latent(component, q) {
      return embed(component.embedding, scaled(q), view).map((value, i) => value / component.lengthscale[i]);
    }

    // The prior mean: a constant, or a network times its size and the function that is zero on faces.
    function priorMeanAt(q) {
      const { constant, network } = data.mean;
      if (!network) return constant;
      const [value] = embed(network, scaled(q), view);
      return constant * multiplierAt(data.mean, q) * value;
    }

    // The function that a component is multiplied by, zero on faces and spheres; see operators/vanishing.py.
    function multiplierAt({ multiplier }, q) {
      if (!multiplier) return 1;
      let found = 1;
      for (const { input, lower, upper, sides } of multiplier.faces) {
        const from = (q[input] - lower) / (upper - lower), to = (upper - q[input]) / (upper - lower);
        found *= sides.length === 2 ? 4 * from * to : sides[0] === "lower" ? from : to;
      }
      for (const { inputs, centre, radius } of multiplier.spheres) {
        found *= 1 - inputs.reduce((total, i, k) => total + ((q[i] - centre[k]) / radius) ** 2, 0);
      }
      return found;
    }

    // How the process of a component enters the field that is shown.
    let shown = 0;
    const share = (component) => component.shares ? component.shares[shown] : 1;

    const priorAt = (q) => components.reduce(
      (total, component) => total + component.variance * (share(component) * multiplierAt(component, q)) ** 2, 0);

    function ofTerm(term, z) {
      const own = term.members.map((i) => z[i]);
      if (!term.rotation) return own;
      return own.map((_, a) => own.reduce((total, value, b) => total + term.rotation[a * term.k + b] * value, 0));
    }

    // One term for points that move only in some of its coordinates: the rows of these coordinates, side by side, and
    // the contributions of the others to s, β·δ and δᵀGδ of every row.
    function prepare(term, own, slots, weight) {
      const k = term.k, m = slots.length, still = term.members.map((_, a) => a).filter((a) => !slots.includes(a));
      const parts = term.parts.map((part) => {
        const n = part.n, sums = [0, 1, 2].map(() => new Float64Array(n));
        const gather = ({ values, step }) => {
          if (part.full && values === part.G.values) return { values, step };
          const count = step ? n : 1, out = new Float64Array(count * m);
          for (let i = 0; i < count; i++) for (let l = 0; l < m; l++) out[i * m + l] = values[i * step + slots[l]];
          return { values: out, step: step ? m : 0 };
        };
        for (let i = 0; i < n; i++) {
          for (const a of still) {
            const delta = own[a] - term.z[(part.from + i) * k + a];
            sums[0][i] += 0.5 * delta * delta;
            sums[1][i] += part.drift.values[i * part.drift.step + a] * delta;
            sums[2][i] += part.G.values[i * part.G.step + a] * delta * delta;
          }
        }
        const z = gather({ values: term.z.subarray(part.from * k, (part.from + n) * k), step: k });
        return { ...part, sums, z: z.values, drift: gather(part.drift), G: gather(part.G) };
      });
      return { term, slots, parts, weight };
    }

    // Adds the covariances of one prepared term with all rows.
    function accumulate({ term, slots, parts, weight }, own, out) {
      const { profile } = term, variance = weight * term.variance, m = slots.length, x = Float64Array.from(slots, (a) => own[a]);
      for (const part of parts) {
        const { to, n, order, full, trace, z } = part, [s0, v0, w0] = part.sums;
        const c = part.c.values, cStep = part.c.step, b = part.drift.values, bStep = part.drift.step;
        const G = part.G.values, gStep = part.G.step;
        for (let i = 0, at = 0; i < n; i++) {
          let s = s0[i], v = v0[i], w = w0[i];
          if (order === 0) {
            for (let l = 0; l < m; l++, at++) { const delta = x[l] - z[at]; s += 0.5 * delta * delta; }
          } else if (full) {
            for (let l = 0, g = i * gStep; l < m; l++, at++) {
              const delta = x[l] - z[at];
              s += 0.5 * delta * delta;
              v += b[i * bStep + l] * delta;
              for (let e = 0; e <= l; e++, g++) w += G[g] * delta * (x[e] - z[at - l + e]);
            }
          } else {
            for (let l = 0, bAt = i * bStep, gAt = i * gStep; l < m; l++, at++) {
              const delta = x[l] - z[at], square = delta * delta;
              s += 0.5 * square;
              v += b[bAt + l] * delta;
              w += G[gAt + l] * square;
            }
          }
          if (profile === null) {
            out[to + i] += variance * Math.exp(-s) * (c[i * cStep] - trace[i] + v + w);
          } else {
            profile(s);
            out[to + i] += variance * (c[i * cStep] * f[0] + f[1] * (trace[i] - v) + f[2] * w);
          }
        }
      }
    }

    // A function (q, out) that writes the covariances of u(q) with all rows, for points q that differ from q0 only in
    // the inputs `moving`. Everything that does not depend on these inputs is computed here, once.
    function covariances(q0, moving) {
      const base = new Float64Array(n), held = new Float64Array(n), active = [];
      for (const component of components) {
        const weight = share(component);
        if (weight === 0) continue;
        const z0 = latent(component, q0), here = [];
        for (const term of component.terms) {
          const all = term.members.map((_, a) => a), own = ofTerm(term, z0);
          let slots = all;
          if (term.inputs) {
            slots = all.filter((a) => moving.includes(term.inputs[a]));
            if (slots.length && term.parts.some((part) => part.full)) slots = all;
          }
          if (slots.length === 0 && !component.multiplier) accumulate(prepare(term, own, all, weight), own, base);
          else here.push(prepare(term, own, slots, weight));
        }
        if (here.length) active.push({ component, here });
      }
      return (q, out) => {
        out.set(base);
        for (const { component, here } of active) {
          const z = latent(component, q), to = component.multiplier ? held.fill(0) : out;
          for (const ready of here) accumulate(ready, ofTerm(ready.term, z), to);
          if (component.multiplier) {
            const factor = multiplierAt(component, q);
            for (let j = 0; j < n; j++) out[j] += factor * held[j];
          }
        }
        return out;
      };
    }

    // The mean at q, from the covariances of u(q) with all rows.
    function meanFrom(k, q) {
      let total = 0;
      for (let j = 0; j < n; j++) total += alpha[j] * k[j];
      return priorMeanAt(q) + total;
    }

    // Standard deviations at eight points from their covariances with all rows, one column each, and their prior
    // variances: L w = k, row by row. Eight sums at a time are faster, because the factor is read only once for all.
    function deviations(columns, priors) {
      const exact = data.deviation.kind === "exact", rows = exact ? n : data.deviation.rank;
      const matrix = view(exact ? data.deviation.factor : data.deviation.root);
      const { data: own, probes, rest, rounding, epsilon } = data.deviation;
      // What learned numbers add to the variance.
      const numbers = data.deviation.numbers ? view(data.deviation.numbers) : [], added = new Float64Array(BLOCK);
      for (let begin = 0; begin < numbers.length; begin += n) {
        const sums = new Float64Array(BLOCK);
        for (let j = 0; j < n; j++) for (let p = 0; p < BLOCK; p++) sums[p] += numbers[begin + j] * columns[j * BLOCK + p];
        for (let p = 0; p < BLOCK; p++) added[p] += sums[p] ** 2;
      }
      const w = new Float64Array(rows * BLOCK), from = exact ? w : columns;
      // What the data explain; what the probes of the calibration explain of the rest, without and with their factors.
      const [explained, probed, scaled, terms] = [0, 1, 2, 3].map(() => new Float64Array(BLOCK));
      for (let i = 0, at = 0; i < rows; i++) {
        let a = 0, b = 0, c = 0, d = 0, e = 0, g = 0, h = 0, k = 0;
        for (let p = 0, stop = BLOCK * (exact ? i : n); p < stop; p += BLOCK, at++) {
          const l = matrix[at];
          a += l * from[p]; b += l * from[p + 1]; c += l * from[p + 2]; d += l * from[p + 3];
          e += l * from[p + 4]; g += l * from[p + 5]; h += l * from[p + 6]; k += l * from[p + 7];
        }
        const to = i * BLOCK;
        w[to] = a; w[to + 1] = b; w[to + 2] = c; w[to + 3] = d; w[to + 4] = e; w[to + 5] = g; w[to + 6] = h; w[to + 7] = k;
        if (exact) {
          const diagonal = matrix[at++];
          for (let p = to; p < to + BLOCK; p++) w[p] = (columns[p] - w[p]) / diagonal;
        }
        for (let p = 0; p < BLOCK; p++) {
          const square = w[to + p] ** 2;
          if (i < own) explained[p] += square;
          else { probed[p] += square; scaled[p] += probes[i - own] * square; }
        }
      }
      for (let j = 0; j < n; j++) for (let p = 0; p < BLOCK; p++) terms[p] += Math.abs(alpha[j] * columns[j * BLOCK + p]);
      return explained.map((value, p) => {
        const left = Math.max(priors[p] - value, 0) + rounding * priors[p] - probed[p];
        return Math.sqrt(scaled[p] + rest * Math.max(left, 0) + (epsilon * terms[p]) ** 2 + added[p]);
      });
    }

    function std(q) {
      const columns = new Float64Array(BLOCK * n);
      all(q).forEach((value, j) => { columns[j * BLOCK] = value; });
      return deviations(columns, new Float64Array(BLOCK).fill(priorAt(q)))[0];
    }

    const everything = Array.from({ length: dim }, (_, i) => i);
    const all = (q) => covariances(q, everything)(q, new Float64Array(n));
    return {
      dim, rows: n, block: BLOCK, covariances, meanFrom, deviations, priorAt, std,
      mean: (q) => meanFrom(all(q), q),
      show: (field) => { shown = field; },
    };
  }

  root.pdedklModel = createModel;
})(typeof window === "undefined" ? globalThis : window);
