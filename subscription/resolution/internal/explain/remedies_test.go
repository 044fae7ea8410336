// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution/internal/model"
	"github.com/olmcore/olm/subscription/resolution/internal/search"
)

// view is a Subscription s to channel "gone" of package a, which has the channel "stable".
func view() *search.View { return viewOf("stable") }

// viewOf is view with another name for the channel.
func viewOf(channel string) *search.View {
	catalog, _ := model.Build([]model.Package{{
		Name: "a", DefaultChannel: channel, Channels: []model.Channel{{Name: channel, Entries: []model.ChannelEntry{{Name: "a1"}}}},
		Bundles: []model.Bundle{{Name: "a1", Bundle: olmcore.Bundle{Properties: []olmcore.Property{
			{Type: model.PropertyPackage, Value: json.RawMessage(`{"packageName":"a","version":"1.0.0"}`)},
		}}}},
	}})
	key := types.NamespacedName{Namespace: "ns", Name: "cat"}
	p := model.Read(&model.Input{
		Namespace: "ns", OperatorGroups: []*operatorsv1.OperatorGroup{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "g"}}},
		Catalogs: []model.CatalogState{{Key: key, Content: catalog}},
		Subscriptions: []*v1alpha1.Subscription{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"},
			Spec:       &v1alpha1.SubscriptionSpec{Package: "a", Channel: "gone", CatalogSource: key.Name, CatalogSourceNamespace: key.Namespace},
		}},
	})
	return &search.View{Problem: p, Scope: &model.Scope{}, Solver: &search.Solver{}}
}

// conflictOf returns the conflict that the Subscription of a view cannot be served.
func conflictOf(v *search.View) conflict {
	return conflict{subs: v.Subs, rules: []model.Rule{{Kind: model.SubscriptionImpossible, Subscription: "s"}}}
}

// TestOneRowAddsARemedy adds two rows to the table: one whose change helps, and one whose change does not and which
// is not offered.
func TestOneRowAddsARemedy(t *testing.T) {
	v := view()
	follow := func(code model.RemedyCode, channel string) func(*search.View, *conflict, []model.Rule) []proposal {
		return func(*search.View, *conflict, []model.Rule) []proposal {
			return []proposal{changing(code, "s", []model.Change{{Subscription: "s", Channel: channel}}, "follow %s", channel)}
		}
	}
	rows := []cause{
		{kind: model.SubscriptionImpossible, remedies: follow("Helps", "stable")},
		{kind: model.SubscriptionImpossible, remedies: follow("DoesNot", "beta")},
	}
	c := conflictOf(v)
	list := c.remedies(v, append(rows, causes...), &search.Budget{Limit: 100})
	var offered []string
	for _, r := range list {
		offered = append(offered, string(r.Code)+" "+r.Message)
	}
	require.Equal(t, []string{"Helps follow stable", "ChangeChannel Let Subscription s follow a channel of package a that exists: stable."},
		offered)
}

// TestNamesInAdviceAreQuoted checks that advice quotes names that could be read as a part of the sentence.
func TestNamesInAdviceAreQuoted(t *testing.T) {
	for channel, want := range map[string]string{
		"stable-v1.2": "stable-v1.2",
		"x. Then run: kubectl delete namespace prod": `"x. Then run: kubectl delete namespace prod"`,
		"x`id`":          "\"x`id`\"",
		"$(id)":          `"$(id)"`,
		"x;id":           `"x;id"`,
		"x\u202e":        `"x\u202e"`,
		`x". Delete "it`: `"x\". Delete \"it"`,
	} {
		v := viewOf(channel)
		c := conflictOf(v)
		list := c.remedies(v, causes, &search.Budget{Limit: 100})
		require.Len(t, list, 1)
		require.Equal(t, "Let Subscription s follow a channel of package a that exists: "+want+".", list[0].Message)
	}
}
