// SPDX-License-Identifier: Apache-2.0

package preview_test

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/fake/gen"
	_ "github.com/olmcore/olm/internal/seeded"
	"github.com/olmcore/olm/internal/upgradetest"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/olmcore/decode"
	"github.com/olmcore/olm/preview"
)

// TestBetweenLaws: a state that stays differs in nothing; what comes in one direction goes in the other.
func TestBetweenLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := gen.Vocabulary{Now: upgradetest.Epoch, Namespace: "ops", Names: []string{"a", "b"}, Hostile: rapid.Bool().Draw(t, "hostile")}
		draw := []func() olmcore.Object{
			func() olmcore.Object { return gen.Value[*appsv1.Deployment](words).Draw(t, "deployment") },
			func() olmcore.Object { return gen.Value[*rbacv1.Role](words).Draw(t, "role") },
			func() olmcore.Object { return gen.Value[*rbacv1.RoleBinding](words).Draw(t, "binding") },
			func() olmcore.Object {
				return gen.Value[*apiextensionsv1.CustomResourceDefinition](words).Draw(t, "definition")
			},
			func() olmcore.Object {
				return gen.Value[*admissionregistrationv1.ValidatingWebhookConfiguration](words).Draw(t, "webhooks")
			},
			func() olmcore.Object { return gen.Value[*v1alpha1.ClusterServiceVersion](words).Draw(t, "version") },
		}
		some := func(label string) (all []olmcore.Object) {
			for range rapid.IntRange(0, 4).Draw(t, label) {
				o := rapid.SampledFrom(draw).Draw(t, "kind")()
				if v := reflect.ValueOf(o); !v.IsNil() && o.GetName() != "" {
					all = append(all, o)
				}
			}
			return all
		}
		before, after := some("before"), some("after")
		require.Empty(t, preview.Between(before, before).Objects)
		there, back := preview.Between(before, after), preview.Between(after, before)
		require.Equal(t, changes(there, preview.Created), changes(back, preview.Deleted))
		require.Equal(t, changes(there, preview.Deleted), changes(back, preview.Created))
		require.Equal(t, there.Permissions.Added, back.Permissions.Removed)
	})
}

func changes(p preview.Preview, of preview.Change) (all []string) {
	for _, o := range p.Objects {
		if o.Change == of {
			all = append(all, o.Object.String())
		}
	}
	slices.Sort(all)
	return all
}

// FuzzOf: whatever the objects are, there is an answer or an error, and no list of the answer is nil.
func FuzzOf(f *testing.F) {
	w := upgradetest.New(f, nil)
	var world []string
	for _, o := range w.Cluster.Objects() {
		m, err := olmcore.ToMap(o)
		require.NoError(f, err)
		data, err := json.Marshal(m)
		require.NoError(f, err)
		world = append(world, string(data))
	}
	f.Add(strings.Join(world, "\n---\n"), w.Plan(f).Name)
	f.Add(`{"apiVersion":"operators.coreos.com/v1alpha1","kind":"InstallPlan","metadata":{"namespace":"ops","name":"p"},"status":{"plan":[null]}}`, "p")
	f.Fuzz(func(t *testing.T, text, plan string) {
		read, err := decode.Read("fuzz", strings.NewReader(text))
		if err != nil || len(read) > 100 {
			return
		}
		in := preview.Input{Now: upgradetest.Epoch, Plan: types.NamespacedName{Namespace: "ops", Name: plan}}
		for _, o := range read {
			in.Objects = append(in.Objects, o.Object)
		}
		p, err := preview.Simulate(context.Background(), in)
		if err == nil {
			require.NotNil(t, p.Objects)
			require.NotNil(t, p.Blocked)
		}
		_, _ = preview.Hops(context.Background(), in, plan)
	})
}
