// SPDX-License-Identifier: Apache-2.0

package csv_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/csv"
	"github.com/olmcore/olm/csv/operatorgroup"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/internal/realdata"
	"github.com/olmcore/olm/olmcore"
)

const kubernetesVersion = "v1.36.2"

var (
	csvKind   = v1alpha1.SchemeGroupVersion.WithKind("ClusterServiceVersion")
	groupKind = operatorsv1.GroupVersion.WithKind("OperatorGroup")
)

// controllers embed csv as shortly as can be.
func controllers(config csv.Config) []fake.Controller {
	return controllersWith(config, func(*csv.Input) {})
}

// controllersWith lets a test say what only a caller knows.
func controllersWith(config csv.Config, hint func(*csv.Input)) []fake.Controller {
	judged := map[types.NamespacedName]*csv.Judged{}
	return []fake.Controller{{
		Name: "group", Kind: groupKind.GroupKind(), Keys: fake.KeysOf(groupKind),
		Reconcile: func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, _ olmcore.LastResults) (olmcore.Result, error) {
			in, err := operatorgroup.Gather(ctx, r, key)
			if err != nil {
				return olmcore.Result{}, err
			}
			in.Now = now
			out, err := operatorgroup.Reconcile(in)
			return out.Result, err
		},
	}, {
		Name: "csv", Kind: csvKind.GroupKind(), Keys: fake.KeysOf(csvKind),
		Reconcile: func(ctx context.Context, r olmcore.Reader, key types.NamespacedName, now time.Time, last olmcore.LastResults) (olmcore.Result, error) {
			in, err := csv.Gather(ctx, r, key, config)
			if err != nil {
				return olmcore.Result{}, err
			}
			in.Now, in.LastRun, in.KubernetesVersion, in.Judged = now, last, kubernetesVersion, judged[key]
			hint(&in)
			out, err := csv.Reconcile(in)
			judged[key] = out.Judged
			return out.Result, err
		},
	}}
}

func newWorld(config csv.Config) (*fake.Cluster, *fake.Driver) {
	c := fake.NewCluster(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	c.AutoCreateNamespaces = true
	if err := c.AddNode("node", nil); err != nil {
		panic(err)
	}
	return c, &fake.Driver{Cluster: c, Controllers: controllers(config)}
}

// groupFor returns an OperatorGroup that a CSV supports.
func groupFor(c *v1alpha1.ClusterServiceVersion) *operatorsv1.OperatorGroup {
	g := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "group"}}
	for _, m := range c.Spec.InstallModes {
		if m.Type == v1alpha1.InstallModeTypeAllNamespaces && m.Supported {
			return g
		}
	}
	g.Spec.TargetNamespaces = []string{c.Namespace}
	return g
}

// needs returns what a CSV requires and an InstallPlan would have created.
func needs(c *v1alpha1.ClusterServiceVersion) []olmcore.Object {
	var objects []olmcore.Object
	seen := map[string]bool{}
	lists := [][]v1alpha1.StrategyDeploymentPermissions{
		c.Spec.InstallStrategy.StrategySpec.Permissions, c.Spec.InstallStrategy.StrategySpec.ClusterPermissions,
	}
	for scope, list := range lists {
		for i, p := range list {
			if !seen[p.ServiceAccountName] {
				seen[p.ServiceAccountName] = true
				objects = append(objects, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: p.ServiceAccountName}})
			}
			labels := olmcore.Owner{Kind: "ClusterServiceVersion", Namespace: c.Namespace, Name: c.Name}.Labels()
			name := fmt.Sprintf("%s-%d", c.Name, i)
			subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: c.Namespace, Name: p.ServiceAccountName}}
			if scope == 0 {
				meta := metav1.ObjectMeta{Namespace: c.Namespace, Name: name, Labels: labels}
				objects = append(objects, &rbacv1.Role{ObjectMeta: meta, Rules: p.Rules},
					&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}})
				continue
			}
			meta := metav1.ObjectMeta{Name: name, Labels: labels}
			objects = append(objects, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: p.Rules},
				&rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}})
		}
	}
	return objects
}

// definitionsFor returns a CRD for each name that a CSV describes, serving every described version.
func definitionsFor(csvs ...*v1alpha1.ClusterServiceVersion) []*apiextensionsv1.CustomResourceDefinition {
	byName := map[string]*apiextensionsv1.CustomResourceDefinition{}
	var list []*apiextensionsv1.CustomResourceDefinition
	for _, c := range csvs {
		for _, d := range append(append([]v1alpha1.CRDDescription(nil), c.Spec.CustomResourceDefinitions.Owned...), c.Spec.CustomResourceDefinitions.Required...) {
			crd := byName[d.Name]
			if crd == nil {
				plural, group, _ := strings.Cut(d.Name, ".")
				crd = definition(group, d.Kind, plural)
				byName[d.Name] = crd
				list = append(list, crd)
			}
			serves := false
			for _, v := range crd.Spec.Versions {
				serves = serves || v.Name == d.Version
			}
			if !serves {
				crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
					Name: d.Version, Served: true, Storage: len(crd.Spec.Versions) == 0,
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
						Type: "object", XPreserveUnknownFields: new(true),
					}},
				})
			}
		}
	}
	return list
}

func definition(group, kind, plural string, versions ...string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group}}
	crd.Spec.Group, crd.Spec.Scope = group, apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List"}
	for i, v := range versions {
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: v, Served: true, Storage: i == 0,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}},
		})
	}
	return crd
}

// install brings one CSV to rest in a world that offers what it requires.
func install(t testing.TB, c *v1alpha1.ClusterServiceVersion) (*fake.Cluster, *fake.Driver) {
	t.Helper()
	c = c.DeepCopy()
	if c.Namespace == "" {
		c.Namespace = "operators"
	}
	cluster, driver := newWorld(csv.Config{})
	for _, crd := range definitionsFor(c) {
		require.NoError(t, cluster.Create(crd))
	}
	require.NoError(t, cluster.Create(needs(c)...))
	require.NoError(t, cluster.Create(groupFor(c), c))
	require.NoError(t, driver.Settle(context.Background()))
	return cluster, driver
}

func realCSVs(t testing.TB) map[string]*v1alpha1.ClusterServiceVersion {
	t.Helper()
	found := map[string]*v1alpha1.ClusterServiceVersion{}
	add := func(objects []olmcore.Object) {
		for _, o := range objects {
			if c, ok := o.(*v1alpha1.ClusterServiceVersion); ok {
				found[c.Name] = c
			}
		}
	}
	for _, b := range realdata.ClusterServiceVersions(t) {
		add(b.Objects)
	}
	add(realdata.Objects(t, realdata.Dir(t)+"/manifests/olm-quickstart.yaml"))
	return found
}

func refOf(o olmcore.Object) olmcore.Ref {
	return olmcore.RefOf(o).Unversioned()
}

// clusterObjectsOf returns what still names a CSV as its owner outside its namespace.
func clusterObjectsOf(cluster *fake.Cluster, c *v1alpha1.ClusterServiceVersion) []olmcore.Key {
	var left []olmcore.Key
	for _, o := range cluster.Objects() {
		if owner, ok := olmcore.OwnerOf(o.GetLabels()); ok && owner.Name == c.Name && owner.Namespace == c.Namespace && o.GetNamespace() != c.Namespace {
			left = append(left, olmcore.KeyOf(o))
		}
	}
	return left
}
