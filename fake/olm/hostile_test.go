// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"errors"
	"testing"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"pgregory.net/rapid"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/gen"
	"github.com/olmcore/olm/fake/invariant"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
)

// zoo is one object of each kind that a person can spoil.
type zoo struct {
	CatalogSources []*v1alpha1.CatalogSource
	Subscriptions  []*v1alpha1.Subscription
	InstallPlans   []*v1alpha1.InstallPlan
	CSVs           []*v1alpha1.ClusterServiceVersion
	OperatorGroups []*operatorsv1.OperatorGroup
	Conditions     []*operatorsv2.OperatorCondition
	Roles          []*rbacv1.Role
	Pods           []*corev1.Pod
	Nodes          []*corev1.Node
	CRDs           []*apiextensionsv1.CustomResourceDefinition
}

func (z zoo) objects() []olmcore.Object {
	all := add(nil, z.CatalogSources)
	all = add(all, z.Subscriptions)
	all = add(all, z.InstallPlans)
	all = add(all, z.CSVs)
	all = add(all, z.OperatorGroups)
	all = add(all, z.Conditions)
	all = add(all, z.Roles)
	all = add(all, z.Pods)
	all = add(all, z.Nodes)
	return add(all, z.CRDs)
}

func add[T olmcore.Object](all []olmcore.Object, more []T) []olmcore.Object {
	for _, o := range more {
		all = append(all, o)
	}
	return all
}

func vocabulary(hostile bool) gen.Vocabulary {
	return gen.Vocabulary{
		Now: noon, Namespace: namespace, Names: []string{"a", "a.v1", "b"}, Hostile: hostile,
		Words: map[string][]string{
			"phase":       {"", "Installing", "Complete", "Failed", "RequiresApproval", "Pending", "Succeeded", "Replacing", "Deleting"},
			"sourcetype":  {"grpc", "configmap", "internal", "Grpc"},
			"kind":        {"ClusterServiceVersion", "Subscription", "CatalogSource", "Role", "CustomResourceDefinition", "InstallPlan"},
			"apiversion":  {"operators.coreos.com/v1alpha1", "v1", "rbac.authorization.k8s.io/v1"},
			"labels key":  {"olm.catalogSource", "olm.managed", "olm.owner", "olm.owner.kind", "olm.owner.namespace", "olm.copiedFrom"},
			"finalizers":  {"operators.coreos.com/csv-cleanup", "operators.coreos.com/installplan-cleanup", "orphan"},
			"strategy":    {"deployment"},
			"reason":      {"Installing", "RequiresApproval", "InstallComponentFailed", "InstallSucceeded", "WaitingOnCleanup"},
			"status":      {"True", "False", "Unknown", "Created", "Present", "NotPresent", "WaitingForApi"},
			"type":        {"Ready", "Installed", "InstallPlanPending", "InstallPlanFailed", "OwnNamespace", "Available", "Progressing"},
			"replaces":    {"", "a", "a.v1", "b"},
			"manifest":    {"", "{}", `{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"a"}}`, `{"kind":"ConfigMap","name":"a","namespace":"b","catalogSourceName":"c","catalogSourceNamespace":"d"}`},
			"approval":    {"Manual", "Automatic"},
			"currentcsv":  {"a.v1", "b"},
			"startingcsv": {"", "a.v1"},
		},
	}
}

// TestNoObjectCanBreakIt loads objects that no sane writer would make, and lets every controller look at each of them:
// a panic, or an error that does not name a field of the input, is a defect.
func TestNoObjectCanBreakIt(t *testing.T) {
	for name, hostile := range map[string]bool{"half-written objects": false, "hostile objects": true} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				c := fake.NewCluster(noon)
				c.AutoCreateNamespaces = true
				c.Sharing().Watch()
				for _, o := range gen.Value[zoo](vocabulary(hostile)).Draw(t, "objects").objects() {
					if data, err := olmcore.ToMap(o); err == nil && data != nil {
						_ = c.Load(o) // what cannot even be stored is no input
					}
				}
				for _, controller := range (&olm.OLM{Options: controllers.Options{KubernetesVersion: "v1.36.2"}}).Controllers() {
					keys, err := controller.Keys(t.Context(), c)
					require.NoError(t, err)
					for _, key := range keys {
						result, err := controller.Reconcile(t.Context(), c, key, noon, nil)
						if err != nil {
							require.True(t, errors.Is(err, olmcore.ErrInvalidInput) || apierrors.IsNotFound(err), "%s %s: %v", controller.Name, key, err)
							continue
						}
						require.NoError(t, invariant.Separate(result), "%s %s", controller.Name, key)
					}
				}
				require.NoError(t, c.Sharing().Verify())
			})
		})
	}
}
