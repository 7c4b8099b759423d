// The order of plans: those that keep all limits first, by the objective.

export const DAY_S = 86400;

// The ratio of a plan's values to the limits.
export function ratios({ values, way }, { deadline_s, budget_usd, facility_power_w }) {
  const money = way === "own" ? Math.max(values.run_cost_usd, values.capital_usd) : values.run_cost_usd;
  const shares = { deadline: (values.wall_days * DAY_S) / deadline_s, budget: money / budget_usd, power: values.facility_power_w / facility_power_w };
  return Object.fromEntries(Object.entries(shares).filter(([, ratio]) => !Number.isNaN(ratio)));
}

// The value minimized by the objective.
export function goal({ values }, { limits, counts, objective }, most) {
  const usual = limits.budget_usd !== undefined ? "wall_days" : counts ? null : "run_cost_usd";
  const name = objective ?? (limits.deadline_s !== undefined ? "run_cost_usd" : usual);
  if (!name) return values.wall_days * values.run_cost_usd;
  return most.includes(name) ? -values[name] : values[name];
}

// Whether the plan is the fastest on the available accelerators: no limit, no offers, and no other objective.
export function isSoonest({ limits = {}, objective, offers }) {
  return !offers && Object.values(limits).every((limit) => limit === undefined) && (objective ?? "wall_days") === "wall_days";
}

export function ranked({ usualDays, bestIsMost }, plans, question) {
  const { limits, counts } = question;
  const short = limits.deadline_s === undefined && !(counts && isSoonest(question)) ? usualDays : Infinity;
  const keyed = plans.map((plan) => {
    const over = ratios(plan, limits);
    const breaks = Object.entries(over).filter(([, ratio]) => ratio > 1);
    const { values } = plan;
    const key = [breaks.reduce((sum, [, ratio]) => sum + Math.log(ratio), 0), Math.max(values.wall_days / short, 1), goal(plan, question, bestIsMost), values.run_cost_usd, values.accelerators];
    return { key, plan: { ...plan, breaks: breaks.length ? Object.fromEntries(breaks) : null } };
  });
  const before = ({ key: a }, { key: b }) => {
    const at = a.findIndex((value, i) => value !== b[i]);
    return at < 0 ? 0 : a[at] - b[at];
  };
  return keyed.sort(before).map(({ plan }) => plan);
}

// The best plan of every other combination of accelerator, rent or ownership, checkpoint tier and site.
export function alternatives(plans) {
  const seen = new Set();
  const first = plans.filter(({ given, way, tier, site }) => seen.size !== seen.add([given.accelerator, way, tier, site].join(" ")).size);
  return first.slice(1);
}

// The requested limits, and the supply limit, that exclude a better plan.
export function requestLimits({ bestIsMost, binding }, question, plans) {
  const [best] = plans;
  const now = goal(best, question, bestIsMost);
  const limits = Object.entries(ratios(best, question.limits)).filter(([name, ratio]) => {
    const better = plans.some((plan) => {
      const { [name]: over, ...others } = ratios(plan, question.limits);
      return over > 1 && Object.values(others).every((share) => share <= 1) && goal(plan, question, bestIsMost) < now;
    });
    return better ? ratio >= binding.share : best.breaks?.[name];
  });
  const similar = plans.filter(({ given, way, tier }) => given.accelerator === best.given.accelerator && way === best.way && tier === best.tier);
  const most = Math.max(...similar.map(({ given }) => given.accelerators));
  return [...limits.map(([name]) => name), ...(question.counts && best.breaks && best.given.accelerators >= most ? ["supply"] : [])];
}
