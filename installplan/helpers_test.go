// SPDX-License-Identifier: Apache-2.0

package installplan_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/installplan"
	"github.com/olmcore/olm/installplan/create"
	"github.com/olmcore/olm/olmcore"
)

const ns = "ops"

var (
	noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	born = metav1.NewTime(noon.Add(-time.Hour))
)

func input(p *v1alpha1.InstallPlan, change ...func(*installplan.Input)) installplan.Input {
	in := installplan.Input{
		Now: noon, InstallPlan: p, Subscriptions: olmcore.Found[*v1alpha1.Subscription](), OperatorGroups: olmcore.Found(group()),
		ClusterServiceVersions:    olmcore.Found[*v1alpha1.ClusterServiceVersion](),
		CustomResourceDefinitions: olmcore.Found[*apiextensionsv1.CustomResourceDefinition](),
		Alongside:                 olmcore.Found[*v1alpha1.ClusterServiceVersion](), Objects: olmcore.Found[olmcore.Object](),
		ConfigMaps: olmcore.Found[*corev1.ConfigMap](), PullSecrets: olmcore.Found[*corev1.Secret](), CatalogSources: olmcore.Found[*v1alpha1.CatalogSource](),
	}
	for _, f := range change {
		f(&in)
	}
	return in
}

func with(objects ...olmcore.Object) func(*installplan.Input) {
	return func(in *installplan.Input) {
		for _, o := range objects {
			switch x := o.(type) {
			case *v1alpha1.Subscription:
				in.Subscriptions.Items = append(in.Subscriptions.Items, x)
			case *v1alpha1.ClusterServiceVersion:
				if x.Namespace == ns {
					in.ClusterServiceVersions.Items = append(in.ClusterServiceVersions.Items, x)
				} else {
					in.Alongside.Items = append(in.Alongside.Items, x)
				}
			case *apiextensionsv1.CustomResourceDefinition:
				in.CustomResourceDefinitions.Items = append(in.CustomResourceDefinitions.Items, x)
			default:
				in.Objects.Items = append(in.Objects.Items, o)
			}
		}
	}
}

// reconcileResult is Reconcile without its requests and its Checkpoint.
func reconcileResult(in installplan.Input) (olmcore.Result, error) {
	out, err := installplan.Reconcile(in)
	return out.Result, err
}

func schemaChanges(in installplan.Input) ([]installplan.SchemaChange, error) {
	out, err := installplan.Reconcile(in)
	return out.SchemaChanges, err
}

func lostBundles(in installplan.Input) ([]v1alpha1.BundleLookup, error) {
	out, err := installplan.Reconcile(in)
	return out.LostBundles, err
}

func reconcile(t testing.TB, in installplan.Input) olmcore.Result {
	t.Helper()
	result, err := reconcileResult(in)
	require.NoError(t, err)
	return result
}

func assess(t require.TestingT, in installplan.Input) installplan.Assessment {
	a, err := installplan.Assess(in)
	require.NoError(t, err)
	return a
}

// statusOf returns the status that a round stores, the plan's own when none.
func statusOf(in installplan.Input, r olmcore.Result) v1alpha1.InstallPlanStatus {
	if p, ok := olmcore.StatusOf[*v1alpha1.InstallPlan](r.Actions); ok {
		return p.Status
	}
	return in.InstallPlan.Status
}

// plans is the controller of this package alone.
func plans(config installplan.Config) fake.Controller {
	return fake.Controller{
		Name: "installplan", Kind: v1alpha1.SchemeGroupVersion.WithKind("InstallPlan").GroupKind(),
		Keys: fake.KeysOf(v1alpha1.SchemeGroupVersion.WithKind("InstallPlan")),
		Reconcile: func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults) (olmcore.Result, error) {
			in, err := installplan.Gather(ctx, r, key, config)
			if err != nil {
				return olmcore.Result{}, err
			}
			in.Now, in.LastRun = now, last
			return reconcileResult(in)
		},
	}
}

// makers creates plans of one resolution, and writes the references of its
// Subscriptions as the package that owns them does.
func makers(resolution func(subs []*v1alpha1.Subscription) olmcore.Resolution, config installplan.Config) fake.Controller {
	return fake.Controller{
		Name: "maker", Kind: v1alpha1.SchemeGroupVersion.WithKind("Subscription").GroupKind(),
		Keys: fake.NamespacesOf(v1alpha1.SchemeGroupVersion.WithKind("Subscription")),
		Reconcile: func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, _ olmcore.LastResults) (olmcore.Result, error) {
			subs, err := olmcore.List[*v1alpha1.Subscription](ctx, r, key.Namespace, nil)
			if err != nil {
				return olmcore.Result{}, err
			}
			in, err := create.Gather(ctx, r, key.Namespace, resolution(subs), config)
			if err != nil {
				return olmcore.Result{}, err
			}
			in.Now = now
			out, err := create.Plan(in)
			return refer(in, out), err
		},
	}
}

func alongsideHash(s string) string {
	h := fnv.New64a()
	h.Write([]byte(s))
	return fmt.Sprintf("%x", h.Sum64())
}
