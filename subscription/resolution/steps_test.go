// SPDX-License-Identifier: Apache-2.0

package resolution_test

import (
	"fmt"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// unlike are namespaces on which work is spent in very different ways.
func unlike(t testing.TB) map[string]resolution.Input {
	c, hard := publishedCatalog(t, community), hardCases()
	held := newWorld()
	var lines []entry
	for i := range 300 {
		p := fmt.Sprintf("p%d", i)
		lines = append(lines, line(p+"/s", p+".v1", ""), line(p+"/s", p+".v2", p+".v1", requires("NotThere")))
		held.sub(p + "/s")
	}
	one := c.world()
	one.Subscriptions = []*v1alpha1.Subscription{subscription("ns", "s", "etcd", "singlenamespace-alpha", "global/community")}
	thousand, _ := thousand(t)
	return map[string]resolution.Input{
		"one new":                  one,
		"50 new":                   c.compatible(50),
		"100 at their heads":       c.settled(t, 100),
		"50 of which two conflict": c.unsatisfiable(),
		"a chain":                  hard["24 packages of 2 versions"].in,
		"a braid":                  hard["12 packages of 20 versions, each with two needs"].in,
		"beside an orphan":         hard["3 packages of 300 versions beside an orphan"].in,
		"a long explanation":       hard["3 packages of 300 versions without end"].in,
		"pigeonhole":               hard["pigeonhole of 20"].in,
		"300 held back":            held.catalog("global/cat", 0, lines...).in,
		"1000 with conflicts":      thousand,
		"1000, 17 left out":        seventeen(t),
	}
}

func steps(s resolution.Stats) int { return s.Reading + s.Steps + s.Explaining }

// looks counts the entries that are looked at for the first time.
type looks struct{ count int }

func (l *looks) Exclude(olmcore.Operator) string {
	l.count++
	return ""
}

// TestEveryReadOfAnEntryIsAStep: looking at an entry is at least most of a step, and where nothing is in the way
// there is not much else. BenchmarkSteps shows how long the steps of these namespaces take.
func TestEveryReadOfAnEntryIsAStep(t *testing.T) {
	for name, in := range unlike(t) {
		l := &looks{}
		in.Exclude = l
		res := resolution.Resolve(in)
		require.Greater(t, steps(res.Stats), l.count*3/4, name)
		if len(res.Cores)+len(res.HeldBack) == 0 {
			require.Less(t, res.Stats.Steps, 2*(l.count+len(in.CSVs))+2, name)
		}
	}
}

// BenchmarkSteps reports how long a step takes: MaxSteps bounds time as well as that is the same everywhere.
func BenchmarkSteps(b *testing.B) {
	for name, in := range unlike(b) {
		b.Run(name, func(b *testing.B) {
			var res resolution.Result
			for b.Loop() {
				res = resolution.Resolve(in)
			}
			b.ReportMetric(float64(steps(res.Stats)), "steps")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(steps(res.Stats)), "ns/step")
		})
	}
}
