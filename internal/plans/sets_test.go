// SPDX-License-Identifier: Apache-2.0

package plans_test

import (
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/internal/plans"
	_ "github.com/olmcore/olm/internal/seeded"
)

// withKeys is a plan whose name is its generation and its keys, for example "a,b". The key "*" collides with every
// plan.
func withKeys(generation int, keys string) *v1alpha1.InstallPlan {
	p := &v1alpha1.InstallPlan{ObjectMeta: metav1.ObjectMeta{Name: keys}}
	p.Spec.Generation = generation
	return p
}

func keysOf(p *v1alpha1.InstallPlan) (keys []string, hasAll bool) {
	if p.Name == "" {
		return nil, false
	}
	return strings.Split(p.Name, ","), p.Name == "*"
}

// TestPlansCollideIfTheyShareAKey checks that Colliding finds the same sets as a comparison of every two plans.
func TestPlansCollideIfTheyShareAKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []*v1alpha1.InstallPlan
		for range rapid.IntRange(0, 8).Draw(t, "plans") {
			list = append(list, withKeys(1, rapid.SampledFrom([]string{"", "a", "b", "c", "d", "a,b", "b,c", "c,d,e", "*"}).Draw(t, "keys")))
		}
		setOf := map[*v1alpha1.InstallPlan]int{}
		for i, set := range plans.Colliding(list, keysOf) {
			require.GreaterOrEqual(t, len(set), 2)
			for _, p := range set {
				require.Zero(t, setOf[p], "a plan is in two sets")
				setOf[p] = i + 1
			}
		}
		connected := connectedPlans(list)
		for i, p := range list {
			isAlone := true
			for j, other := range list {
				if i == j {
					continue
				}
				isAlone = isAlone && !connected[i][j]
				require.Equal(t, connected[i][j], setOf[p] != 0 && setOf[p] == setOf[other], "%q and %q", p.Name, other.Name)
			}
			require.Equal(t, isAlone, setOf[p] == 0)
		}
	})
}

// connectedPlans reports for every two plans whether they collide, directly or through others.
func connectedPlans(list []*v1alpha1.InstallPlan) [][]bool {
	connected := make([][]bool, len(list))
	for i, p := range list {
		connected[i] = make([]bool, len(list))
		keys, hasAll := keysOf(p)
		for j, other := range list {
			others, otherHasAll := keysOf(other)
			connected[i][j] = hasAll || otherHasAll
			for _, key := range keys {
				for _, of := range others {
					connected[i][j] = connected[i][j] || key == of
				}
			}
		}
	}
	for through := range list {
		for i := range list {
			for j := range list {
				connected[i][j] = connected[i][j] || connected[i][through] && connected[through][j]
			}
		}
	}
	return connected
}

// TestOnlyPlansOfOneGenerationAreCompared checks that plans of different generations, or of none, are in no set.
func TestOnlyPlansOfOneGenerationAreCompared(t *testing.T) {
	list := []*v1alpha1.InstallPlan{
		withKeys(2, "a"), withKeys(1, "a"), withKeys(0, "a"), withKeys(0, "a"), withKeys(-1, "*"), withKeys(-1, "*"),
		withKeys(1, "a"), withKeys(2, "b"), withKeys(3, "a"), withKeys(2, "b"),
	}
	require.Equal(t, [][]*v1alpha1.InstallPlan{{list[7], list[9]}, {list[1], list[6]}}, plans.OfOneGeneration(list, keysOf))
}

// TestNamesOfPlans checks the subject of a message about one plan, about some plans, and about many.
func TestNamesOfPlans(t *testing.T) {
	var list []*v1alpha1.InstallPlan
	for _, want := range []string{
		"InstallPlan a has", "InstallPlans a and b have", "InstallPlans a, b and c have", "InstallPlans a, b, c and d have",
		"InstallPlans a, b, c, d and e have", "InstallPlans a, b, c, d, e and 1 more have", "InstallPlans a, b, c, d, e and 2 more have",
	} {
		list = append(list, withKeys(1, string(rune('a'+len(list)))))
		require.Equal(t, want, plans.Names(list, "has", "have"))
	}
}
