// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/subscription/resolution"
)

// within puts the annotation of a version range on a Subscription.
func within(text string) func(*v1alpha1.Subscription) {
	return func(s *v1alpha1.Subscription) {
		s.Annotations = map[string]string{resolution.AnnotationVersionRange: text}
	}
}

// jumps is a channel a1, a2, a3, a4 of which the head replaces a3 and all of them skip from 1.0.0 on.
func jumps() []entry {
	lines := []entry{line("a/stable", "a1", ""), line("a/stable", "a2", "a1"), line("a/stable", "a3", "a2"), line("a/stable", "a4", "a3")}
	for i := range lines {
		lines[i].skipRange = ">=1.0.0"
	}
	return lines
}

func TestASubscriptionStaysInsideItsVersionRange(t *testing.T) {
	for name, c := range map[string]struct {
		lines     []entry
		installed string
		text      string
		want      string
	}{
		"at most, from nothing":             {chain(), "", "<=2.0.0", "Resolved\ninstall a2 from global/cat a/stable replacing a1 for a\na: nothing -> a2, currentCSV a2\nheld back a: Pinned PIN"},
		"at most, over a head that skips":   {jumps(), "a1", "<=3.0.0", "Resolved\ninstall a3 from global/cat a/stable replacing a1 for a\na: a1 -> a3, currentCSV a3\nheld back a: Pinned PIN"},
		"at a version, from nothing":        {chain(), "", "2.0.0", "Resolved\ninstall a2 from global/cat a/stable replacing a1 for a\na: nothing -> a2, currentCSV a2\nheld back a: Pinned PIN"},
		"at the version that is there":      {chain(), "a2", "2.0.0", "Unchanged\na: a2 -> a2\nheld back a: Pinned PIN"},
		"a range":                           {jumps(), "a1", ">=2.0.0 <3.0.0", "Resolved\ninstall a2 from global/cat a/stable replacing a1 for a\na: a1 -> a2, currentCSV a2\nheld back a: Pinned PIN"},
		"not one, which another leads over": {jumps(), "a3", "!=4.0.0", "Unchanged\na: a3 -> a3\nheld back a: Pinned PIN"},
		"not one that is not the best":      {jumps(), "a1", "!=3.0.0", "Resolved\ninstall a4 from global/cat a/stable replacing a1 for a\na: a1 -> a4, currentCSV a4"},
		"what is there is outside and stays": {chain(), "a2", "<=1.0.0",
			"Unchanged\na: a2 -> a2\nheld back a: Pinned PIN"},
		"nothing is inside": {chain(), "", ">9.0.0",
			"Unsatisfiable\na: nothing -> nothing, failed\ncore [a]: constraints not satisfiable: no operators found in PIN in package a in the catalog referenced by subscription a, subscription a exists"},
		"a range that cannot be read, with an operator":    {chain(), "a2", "~2", "Unchanged\na: a2 -> a2\nheld back a: PinInvalid \nInvalidPin a"},
		"a range that cannot be read, without an operator": {chain(), "", "~2", "Unsatisfiable\na: nothing -> nothing, failed\ncore [a]: constraints not satisfiable: subscription a exists, the version range \"~2\" (FROM) cannot be read: Could not parse Range \"~2\": Could not parse comparator \"~\" in \"~2\"\nInvalidPin a"},
		"an empty range": {chain(), "a2", "", "Unchanged\na: a2 -> a2\nheld back a: PinInvalid \nInvalidPin a"},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(from string, w *world) {
				if c.installed != "" {
					w.csv("a", c.installed, nil)
				}
				want := strings.ReplaceAll(c.want, "PIN", `the version range "`+c.text+`" (`+from+`)`)
				want = strings.ReplaceAll(want, "FROM", from)
				require.Equal(t, want, describe(resolution.Resolve(w.in)))
			}
			run("annotation olmcore/version-range", newWorld(c.lines...).sub("a/stable", has(c.installed), within(c.text)))
			w := newWorld(c.lines...).sub("a/stable", has(c.installed))
			w.in.Pins = []resolution.Pin{{Subscription: "a", Range: c.text}}
			run("Input.Pins", w)
		})
	}
}

func TestAllVersionRangesOfASubscriptionApply(t *testing.T) {
	w := newWorld(jumps()...).sub("a/stable", has("a1"), within("<=3.0.0")).csv("a", "a1", nil)
	w.in.Pins = []resolution.Pin{{Subscription: "a", Range: "!=3.0.0"}, {Subscription: "b", Range: "1.0.0"}}
	require.Equal(t, "Resolved\ninstall a2 from global/cat a/stable replacing a1 for a\na: a1 -> a2, currentCSV a2\n"+
		"held back a: Pinned the version range \"<=3.0.0\" (annotation olmcore/version-range)\nInvalidPin b", describe(resolution.Resolve(w.in)))
}

func TestVersionRangeOnlyRestrictsTheSpec(t *testing.T) {
	starts := newWorld(chain()...).sub("a/stable", starting("a1"), within(">=2.0.0"))
	require.Contains(t, describe(resolution.Resolve(starts.in)), "a: nothing -> nothing, failed")
	elsewhere := newWorld(append(chain(), line("a/beta", "a9", "a3"))...).sub("a/stable", has("a3"), within(">=9.0.0")).csv("a", "a3", nil)
	require.Equal(t, "Unchanged\na: a3 -> a3", describe(resolution.Resolve(elsewhere.in)))
}

func TestInvalidVersionRangeBlocksOnlyItsSubscription(t *testing.T) {
	w := newWorld(append(chain(), line("b/stable", "b1", ""))...).sub("a/stable", within("latest")).sub("b/stable")
	res := resolution.Resolve(w.in)
	require.Equal(t, resolution.Resolved, res.Outcome)
	require.Equal(t, []string{"b"}, res.Operators[0].For)
	require.Equal(t, resolution.ChangePin, res.Cores[0].Remedies[0].Code)
	require.Equal(t, "Subscription a waits: the version range \"latest\" (annotation olmcore/version-range) cannot be read: Could not get version from string: \"latest\".", res.Cores[0].Summary)
	d := res.Diagnostics[0]
	require.Equal(t, resolution.ReasonInvalidPin, d.Reason)
	require.Equal(t, `metadata.annotations["olmcore/version-range"]`, d.Path)
}

func TestDependencyRespectsTheVersionRange(t *testing.T) {
	lines := append(chain(), line("b/stable", "b1", "", requiresPackage("a", ">=3.0.0")), line("c/stable", "c1", "", requiresPackage("a", ">=2.0.0")))
	w := newWorld(lines...).sub("a/stable", has("a1"), within("<=2.0.0")).csv("a", "a1", nil).sub("b/stable")
	res := resolution.Resolve(w.in)
	require.Equal(t, "a2", res.Operators[0].Name, "it goes on inside its range")
	require.Equal(t, []string{"b"}, res.Cores[0].Subscriptions)
	w = newWorld(lines...).sub("a/stable", within("~")).sub("b/stable")
	require.Empty(t, resolution.Resolve(w.in).Operators, "nobody knows what the range means, so nothing of the package comes")
	w = newWorld(lines...).sub("a/stable", has("a1"), within("<=2.0.0")).csv("a", "a1", nil).sub("c/stable")
	require.Len(t, resolution.Resolve(w.in).Operators, 2)
}

func TestHeldBackUpgradeNamesTheVersionRange(t *testing.T) {
	w := newWorld(chain()...).sub("a/stable", has("a2"), within("<3.0.0")).csv("a", "a2", nil)
	held := resolution.Resolve(w.in).HeldBack
	require.Equal(t, []resolution.HeldBack{{
		Subscription: "a", Candidate: "a3", Code: resolution.Pinned, Blocker: `the version range "<3.0.0" (annotation olmcore/version-range)`,
		Summary: `Subscription a stays at a2: the version range "<3.0.0" (annotation olmcore/version-range) does not allow a3.`,
	}}, held)
	x := resolution.Explain(w.in, "a", "a3")
	require.Equal(t, resolution.Pinned, x.Code)
	require.Equal(t, `Subscription a may not have a3: the version range "<3.0.0" (annotation olmcore/version-range) does not allow it.`, x.Summary)
}

func TestVersionRangesChangeTheFingerprint(t *testing.T) {
	w := newWorld(chain()...).sub("a/stable")
	before := w.in.Fingerprint()
	w.in.Pins = []resolution.Pin{{Subscription: "a", Range: "1.0.0"}}
	pinned := w.in.Fingerprint()
	w.in.Pins = nil
	within("1.0.0")(w.in.Subscriptions[0])
	require.NotEqual(t, before, pinned)
	require.NotEqual(t, before, w.in.Fingerprint(), "the generation of a Subscription stays the same when its annotations change")
}

// TestSelectedVersionsAreInsideTheVersionRange: whatever comes is inside, and a range that allows everything
// changes nothing.
func TestSelectedVersionsAreInsideTheVersionRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawNamespace(t, small)
		in := n.input()
		in.Policy.OmitHeldBack = true
		free := resolution.Resolve(in)
		texts := []string{"<=2.0.0", ">=1.0.0 <3.0.0", "!=2.0.0", "2.0.0", "<1.0.0 || >2.0.0"}
		ranges := map[string]string{}
		for _, s := range in.Subscriptions {
			in.Pins = append(in.Pins, resolution.Pin{Subscription: s.Name, Range: ">=0.0.0-0"})
		}
		if got := resolution.Resolve(in); describe(got) != describe(free) {
			t.Fatalf("a range of everything makes\n%s\nof\n%s", describe(got), describe(free))
		}
		for _, s := range in.Subscriptions {
			if rapid.Bool().Draw(t, "pin "+s.Name) {
				ranges[s.Name] = rapid.SampledFrom(texts).Draw(t, "range")
				in.Pins = append(in.Pins, resolution.Pin{Subscription: s.Name, Range: ranges[s.Name]})
			}
		}
		for _, op := range resolution.Resolve(in).Operators {
			for _, name := range op.For {
				if text, ok := ranges[name]; ok && !semver.MustParseRange(text)(semver.MustParse(op.Version)) {
					t.Fatalf("%s %s comes for %s, which has to stay in %s", op.Name, op.Version, name, text)
				}
			}
		}
	})
}

// FuzzVersionRange throws texts at the annotation.
func FuzzVersionRange(f *testing.F) {
	for _, text := range []string{"", "1.0.0", "<=2.0.0", ">1.0.0 || || <0.1.0", "!=3.0.0", "latest", "1.x", ">=1.0.0 <", "\x00", strings.Repeat("1.0.0||", 5000)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		w := newWorld(append(jumps(), line("b/stable", "b1", ""))...).sub("a/stable", has("a1"), within(text)).csv("a", "a1", nil).sub("b/stable")
		res := resolution.Resolve(w.in)
		if in, err := semver.ParseRange(text); err != nil && res.Standing("a").Target.Target != "a1" {
			t.Fatalf("%q is no range (%v), and a moves to %s", text, err, res.Standing("a").Target.Target)
		} else if op := res.Operators; err == nil && len(op) == 2 && !strings.Contains(text, "||") && !in(semver.MustParse(op[0].Version)) {
			t.Fatalf("%q: %s is outside", text, op[0].Version)
		}
		if res.Standing("b").Target.Target != "b1" {
			t.Fatalf("%q stops another Subscription: %s", text, describe(res))
		}
		resolution.Explain(w.in, "a", "a4")
	})
}
