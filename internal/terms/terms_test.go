// SPDX-License-Identifier: Apache-2.0

package terms_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/internal/terms"
	"github.com/olmcore/olm/olmcore"
)

// TestAnIndexFollowsEachChange: what it finds is what going through the objects does.
func TestAnIndexFollowsEachChange(t *testing.T) {
	words := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 4)
	termsOf := func(o olmcore.Object, add func(olmcore.Term)) {
		for _, word := range o.GetFinalizers() { // as good a list as any
			add(olmcore.Term{Of: "word", Value: word})
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		index, world := terms.NewIndex(nil, termsOf), map[string]olmcore.Object{}
		for range 30 {
			s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "in"), Name: fmt.Sprint(rapid.IntRange(0, 4).Draw(t, "name"))}}
			name := terms.NameOf(s)
			if s.Finalizers = words.Draw(t, "words"); rapid.IntRange(0, 2).Draw(t, "dropped") == 0 {
				index.Drop(name)
				delete(world, name.String())
			} else {
				index.Put(s)
				world[name.String()] = s
			}
			asked := words.Draw(t, "asked")
			var by []olmcore.Term
			for _, word := range asked {
				by = append(by, olmcore.Term{Of: "word", Value: word})
			}
			var want, all []string
			for name, o := range world {
				all = append(all, name)
				if slices.ContainsFunc(o.GetFinalizers(), func(word string) bool { return slices.Contains(asked, word) }) {
					want = append(want, name)
				}
			}
			slices.Sort(want)
			require.Equal(t, want, names(index.Find(by...)))
			var objects []olmcore.Object
			for _, name := range all {
				objects = append(objects, world[name])
			}
			require.Equal(t, want, names(terms.NewIndex(objects, termsOf).Find(by...)), "as one that is made anew does")
		}
	})
}

func names(objects []olmcore.Object) (all []string) {
	for _, o := range objects {
		all = append(all, terms.NameOf(o).String())
	}
	return all
}
