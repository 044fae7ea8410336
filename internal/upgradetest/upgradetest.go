// SPDX-License-Identifier: Apache-2.0

// Package upgradetest is a cluster in which one version of an operator runs and the next one waits for approval: what
// previews and ways back are tested with.
package upgradetest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/blang/semver/v4"
	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/controllers"
	"github.com/olmcore/olm/fake"
	"github.com/olmcore/olm/fake/olm"
	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// Names of what is in the cluster.
const (
	Namespace    = "ops"
	Subscription = "vault"
	First        = "vault.v1.0.0"
	Second       = "vault.v2.0.0"
	Definition   = "vaults.bank.example.com"
	Deployment   = "vault-operator"
)

// Epoch is when the world begins.
var Epoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// Bundle is a version of the operator, to be changed by tests. CRD may be nil; More are its other manifests.
type Bundle struct {
	CSV  *v1alpha1.ClusterServiceVersion
	CRD  *apiextensionsv1.CustomResourceDefinition
	More []olmcore.Object
	// Deprecated is what the catalog says of it, empty for nothing.
	Deprecated string
}

// BundleFrom returns the version that manifests are of.
func BundleFrom(objects []olmcore.Object) (b Bundle) {
	for _, o := range objects {
		if csv, is := o.(*v1alpha1.ClusterServiceVersion); is {
			b.CSV = csv
		} else {
			b.More = append(b.More, o)
		}
	}
	return b
}

func (b Bundle) objects() []olmcore.Object {
	all := append([]olmcore.Object{b.CSV}, b.More...)
	if b.CRD != nil {
		all = append(all, b.CRD)
	}
	return all
}

func supportsOwnNamespace(csv *v1alpha1.ClusterServiceVersion) bool {
	return slices.ContainsFunc(csv.Spec.InstallModes, func(m v1alpha1.InstallMode) bool {
		return m.Type == v1alpha1.InstallModeTypeOwnNamespace && m.Supported
	})
}

// BundleOf returns version n of the operator.
func BundleOf(n uint64) Bundle {
	name := map[uint64]string{1: First, 2: Second}[n]
	csv := &v1alpha1.ClusterServiceVersion{}
	csv.APIVersion, csv.Kind = v1alpha1.ClusterServiceVersionAPIVersion, v1alpha1.ClusterServiceVersionKind
	csv.Name, csv.Spec.Version.Version = name, semver.Version{Major: n}
	if n == 2 {
		csv.Spec.Replaces = First
	}
	csv.Spec.InstallModes = []v1alpha1.InstallMode{{Type: v1alpha1.InstallModeTypeOwnNamespace, Supported: true}}
	csv.Spec.CustomResourceDefinitions.Owned = []v1alpha1.CRDDescription{{Name: Definition, Version: "v1", Kind: "Vault"}}
	labels := map[string]string{"app": Deployment}
	csv.Spec.InstallStrategy.StrategyName = v1alpha1.InstallStrategyNameDeployment
	csv.Spec.InstallStrategy.StrategySpec = v1alpha1.StrategyDetailsDeployment{
		DeploymentSpecs: []v1alpha1.StrategyDeploymentSpec{{Name: Deployment, Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				ServiceAccountName: Deployment, Containers: []corev1.Container{{Name: "manager", Image: "registry.example.com/vault:" + csv.Spec.Version.String()}},
			}},
		}}},
		Permissions: []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: Deployment, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}},
		}}},
	}
	return Bundle{CSV: csv, CRD: crd()}
}

func crd() *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.APIVersion, crd.Kind, crd.Name = "apiextensions.k8s.io/v1", "CustomResourceDefinition", Definition
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "bank.example.com", Scope: apiextensionsv1.NamespaceScoped,
		Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "vaults", Singular: "vault", Kind: "Vault", ListKind: "VaultList"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{Version("v1", true, "size")},
	}
	return crd
}

// Version returns a served version of the definition, whose spec has fields of numbers.
func Version(name string, stored bool, fields ...string) apiextensionsv1.CustomResourceDefinitionVersion {
	spec := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for _, f := range fields {
		spec.Properties[f] = apiextensionsv1.JSONSchemaProps{Type: "integer"}
	}
	return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: true, Storage: stored, Schema: &apiextensionsv1.CustomResourceValidation{
		OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec}},
	}}
}

// Vault returns a custom resource of a version.
func Vault(version, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "bank.example.com/" + version, "kind": "Vault", "metadata": map[string]any{"namespace": Namespace, "name": name}, "spec": spec,
	}}
}

// World is the cluster, with the controllers in it and the catalog that they resolve from.
type World struct {
	Cluster  *fake.Cluster
	Driver   *fake.Driver
	OLM      *olm.OLM
	Catalogs *controllers.Catalogs
}

// New returns a world in which version 1 runs, approved by hand, and version 2, as change leaves it, waits for
// approval. objects are there from the beginning.
func New(t require.TestingT, change func(first, second *Bundle), objects ...olmcore.Object) *World {
	first, second := BundleOf(1), BundleOf(2)
	if change != nil {
		change(&first, &second)
	}
	w := Offering(t, []Bundle{first}, objects...)
	w.Approve(t)
	w.Offer(t, first, second)
	w.Run(t)
	return w
}

// Offering returns a world with a Subscription, and a catalog of these versions; nothing was approved.
func Offering(t require.TestingT, bundles []Bundle, objects ...olmcore.Object) *World {
	w := &World{Cluster: fake.NewCluster(Epoch), OLM: &olm.OLM{}}
	w.OLM.KubernetesVersion, w.OLM.InstallPlan.MaxStatusBytes = "v1.36.0", 16<<20 // whatever the bundles, they are installed
	w.Offer(t, bundles...)
	w.Driver = &fake.Driver{Cluster: w.Cluster, Controllers: w.OLM.Controllers()}
	group := &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "group"}}
	if supportsOwnNamespace(bundles[0].CSV) {
		group.Spec.TargetNamespaces = []string{Namespace}
	}
	source := &v1alpha1.CatalogSource{ObjectMeta: metav1.ObjectMeta{Namespace: "olm", Name: "community"}, Spec: v1alpha1.CatalogSourceSpec{SourceType: v1alpha1.SourceTypeGrpc, Image: "registry.example.com/catalog:1"}}
	sub := &v1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Subscription}, Spec: &v1alpha1.SubscriptionSpec{
		CatalogSource: "community", CatalogSourceNamespace: "olm", Package: "vault", Channel: "stable", InstallPlanApproval: v1alpha1.ApprovalManual,
	}}
	var namespaces []olmcore.Object
	for _, name := range []string{Namespace, "olm", metav1.NamespaceSystem} {
		namespaces = append(namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	require.NoError(t, w.Cluster.Node("a").Create(nil))
	require.NoError(t, w.Cluster.Create(append(append(namespaces, objects...), group, source, sub)...))
	w.Run(t)
	return w
}

// Offer makes the catalog have these versions and no others, each replacing the one before.
func (w *World) Offer(t require.TestingT, bundles ...Bundle) {
	p := resolution.Package{Name: "vault", DefaultChannel: "stable", Channels: []resolution.Channel{{Name: "stable"}}}
	for _, b := range bundles {
		p.Channels[0].Entries = append(p.Channels[0].Entries, resolution.ChannelEntry{Name: b.CSV.Name, Replaces: b.CSV.Spec.Replaces})
		if b.Deprecated != "" {
			p.Deprecations = append(p.Deprecations, resolution.Deprecation{Bundle: b.CSV.Name, Message: b.Deprecated})
		}
		value, err := json.Marshal(map[string]string{"packageName": "vault", "version": b.CSV.Spec.Version.String()})
		require.NoError(t, err)
		p.Bundles = append(p.Bundles, resolution.Bundle{Name: b.CSV.Name, Bundle: olmcore.Bundle{
			Objects: b.objects(), Properties: []olmcore.Property{{Type: resolution.PropertyPackage, Value: value}},
		}})
	}
	content, problems := resolution.Build([]resolution.Package{p})
	require.Empty(t, problems)
	w.Catalogs = &controllers.Catalogs{GlobalNamespace: "olm", Content: map[types.NamespacedName]*resolution.Catalog{{Namespace: "olm", Name: "community"}: content}}
	w.Catalogs.Serve(&w.OLM.Options)
	if w.Driver != nil {
		w.OLM.CatalogsChanged()
		require.NoError(t, fake.Edit(w.Cluster, "olm", "community", func(c *v1alpha1.CatalogSource) {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, "offers", bundles[len(bundles)-1].CSV.Name)
		}))
	}
}

// Run lets some minutes pass.
func (w *World) Run(t require.TestingT) {
	require.NoError(t, w.Driver.RunFor(context.Background(), 10*time.Minute))
}

// Subscribed is the Subscription as it is.
func (w *World) Subscribed() *v1alpha1.Subscription {
	return fake.Find[*v1alpha1.Subscription](w.Cluster, Namespace, Subscription)
}

// Plan is the plan that the Subscription refers to.
func (w *World) Plan(t require.TestingT) types.NamespacedName {
	ref := w.Subscribed().Status.InstallPlanRef
	require.NotNil(t, ref, "no plan: %v", w.Subscribed().Status)
	return types.NamespacedName{Namespace: Namespace, Name: ref.Name}
}

// Approve approves that plan, and lets some minutes pass.
func (w *World) Approve(t require.TestingT) {
	key := w.Plan(t)
	require.NoError(t, fake.Edit(w.Cluster, key.Namespace, key.Name, func(p *v1alpha1.InstallPlan) { p.Spec.Approved = true }))
	w.Run(t)
}

// Phase is that of a version; empty when it does not exist.
func (w *World) Phase(name string) v1alpha1.ClusterServiceVersionPhase {
	c := fake.Find[*v1alpha1.ClusterServiceVersion](w.Cluster, Namespace, name)
	if c == nil {
		return ""
	}
	return c.Status.Phase
}

// Failing ends an Example in which something fails that must not.
type Failing struct{}

// Errorf panics.
func (Failing) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// FailNow panics.
func (Failing) FailNow() { panic("the Example fails") }
