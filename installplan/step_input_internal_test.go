// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"reflect"
	"testing"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/installplan/internal/step"
	"github.com/olmcore/olm/olmcore"
)

// TestStepInputFollowsTheInput checks that each field of step.Input changes if its source in the Input changes.
func TestStepInputFollowsTheInput(t *testing.T) {
	other := func() *v1alpha1.InstallPlan {
		plan := &v1alpha1.InstallPlan{}
		plan.Name, plan.Spec.Generation = "later", 2
		plan.Annotations = map[string]string{olmcore.KeyPrefix + "packages": "a"}
		plan.Status.StartTime = new(olmcore.Timestamp(time.Unix(1, 0)))
		plan.Status.Plan = []*v1alpha1.Step{{Resource: v1alpha1.StepResource{Kind: v1alpha1.ClusterServiceVersionKind, Name: "a.v2"}}}
		return plan
	}
	changes := map[string]func(in *Input){
		"Now":                    func(in *Input) { in.Now = in.Now.Add(time.Second) },
		"Plan":                   func(in *Input) { in.InstallPlan = other() },
		"HasAccount":             func(in *Input) { in.ServiceAccount = &corev1.ServiceAccount{} },
		"Subscriptions":          func(in *Input) { in.Subscriptions = olmcore.Found(&v1alpha1.Subscription{}) },
		"ClusterServiceVersions": func(in *Input) { in.ClusterServiceVersions = olmcore.Found(&v1alpha1.ClusterServiceVersion{}) },
		"Alongside":              func(in *Input) { in.Alongside = olmcore.Found(&v1alpha1.ClusterServiceVersion{}) },
		"Announced":              func(in *Input) { in.Announced = []types.NamespacedName{{Name: "x"}} },
		"CustomResourceDefinitions": func(in *Input) {
			in.CustomResourceDefinitions = olmcore.Found(&apiextensionsv1.CustomResourceDefinition{})
		},
		"APIServices":        func(in *Input) { in.APIServices = olmcore.Found(&apiregistrationv1.APIService{}) },
		"CustomResources":    func(in *Input) { in.CustomResources = olmcore.Found(ResourceVerdict{Name: "x"}) },
		"Objects":            func(in *Input) { in.Objects = olmcore.Found[olmcore.Object](&corev1.Service{}) },
		"ConfigMaps":         func(in *Input) { in.ConfigMaps = olmcore.Found(&corev1.ConfigMap{}) },
		"PullSecrets":        func(in *Input) { in.PullSecrets = olmcore.Found(&corev1.Secret{}) },
		"CatalogSources":     func(in *Input) { in.CatalogSources = olmcore.Found(&v1alpha1.CatalogSource{}) },
		"LastRun":            func(in *Input) { in.LastRun = olmcore.LastResults{{Name: "x"}: {}} },
		"Memory":             func(in *Input) { in.Unpacked = (*Memory)(nil).Next() },
		"TakenOver":          func(in *Input) { in.RelatedPlans = olmcore.Found(other()) },
		"OLMNamespace":       func(in *Input) { in.Config.OLMNamespace = "x" },
		"GlobalNamespace":    func(in *Input) { in.Config.GlobalNamespace = "x" },
		"OverwriteUnmanaged": func(in *Input) { in.Config.OverwriteUnmanaged = true },
		"CopyAnySecret":      func(in *Input) { in.Config.CopyAnySecret = true },
		"ChangeOwnedCRDs":    func(in *Input) { in.Config.ChangeOwnedCRDs = true },
		"SupportedKinds":     func(in *Input) { in.Config.SupportedKinds = []string{"Gizmo"} },
	}
	base := func() *Input {
		plan := other()
		plan.Name, plan.UID, plan.Spec.Generation = "earlier", "1", 1
		plan.Status.Plan[0].Resource.Name = "a.v1"
		return &Input{Now: time.Unix(1, 0), InstallPlan: plan}
	}
	same := reflect.ValueOf(stepInput(base(), false))
	for field := range reflect.TypeFor[step.Input]().Fields() {
		in, preflight := base(), field.Name == "Preflight"
		if !preflight {
			require.Contains(t, changes, field.Name, "the field needs a change in this test")
			changes[field.Name](in)
		}
		changed := reflect.ValueOf(stepInput(in, preflight))
		require.NotEqual(t, same.FieldByIndex(field.Index).Interface(), changed.FieldByIndex(field.Index).Interface(), field.Name)
	}
}
