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
func view() *View { return viewOf("stable") }

// viewOf is view with another name for the channel.
func viewOf(channel string) *View {
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
	return &View{Problem: p, Scope: &model.Scope{}, Solver: &search.Solver{}}
}

// TestOneRowAddsARemedy adds two rows to the table: one whose change helps, and one whose change does not and which
// is not offered.
func TestOneRowAddsARemedy(t *testing.T) {
	v := view()
	follow := func(channel string) func(*View, *trouble) []proposal {
		return func(_ *View, t *trouble) []proposal {
			return []proposal{{object: "s", message: "follow " + channel, changes: []model.Change{{Subscription: "s", Channel: channel}}}}
		}
	}
	table := append([]remedy{{"Helps", follow("stable")}, {"DoesNot", follow("beta")}}, remedies...)
	list := remediesFor(v, table, &trouble{subs: v.Subs}, &search.Budget{Limit: 100})
	var offered []string
	for _, r := range list {
		offered = append(offered, string(r.Code)+" "+r.Message)
	}
	require.Equal(t, []string{"Helps follow stable", "ChangeChannel Let Subscription s follow a channel of package a that exists: stable."}, offered)
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
		list := remediesFor(v, remedies, &trouble{subs: v.Subs}, &search.Budget{Limit: 100})
		require.Len(t, list, 1)
		require.Equal(t, "Let Subscription s follow a channel of package a that exists: "+want+".", list[0].Message)
	}
}

func TestNearestNames(t *testing.T) {
	names := []string{"kafka", "strimzi-kafka-operator", "etcd", "prometheus"}
	for wrong, want := range map[string][]string{
		"kafak": {"kafka"}, "Kafka": {"kafka", "strimzi-kafka-operator"}, "promethues": {"prometheus"}, "etc": {"etcd"}, "": nil, "redis": nil,
	} {
		require.Equal(t, want, nearest(wrong, names), wrong)
	}
}
