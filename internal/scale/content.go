// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"

	"github.com/operator-framework/api/pkg/lib/version"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
	"github.com/olmcore/olm/subscription/resolution"
)

// bundle is one version of a package. Its content follows from these alone, and is as large as that of published ones:
// about 50 KB of ClusterServiceVersion and 25 KB for each of two CustomResourceDefinitions.
type bundle struct {
	pkg     string
	version int
	global  bool // it watches all namespaces, and only these
}

func (b bundle) name() string { return fmt.Sprintf("%s.v1.%d.0", b.pkg, b.version) }
func (b bundle) image() string {
	return fmt.Sprintf("registry.example.com/%s-bundle:1.%d.0", b.pkg, b.version)
}
func (b bundle) crd(n int) string { return fmt.Sprintf("%ss%d.%s.example.com", b.pkg, n, b.pkg) }

const crdsOfEach = 2

// text returns words that look like prose of a length, always the same of a seed, and different from all other seeds.
func text(seed string, length int) string {
	h := fnv.New64a()
	h.Write([]byte(seed))
	draw := rand.New(rand.NewPCG(h.Sum64(), 1))
	var b strings.Builder
	b.Grow(length + 12)
	for b.Len() < length {
		for range 2 + draw.IntN(9) {
			b.WriteByte('a' + byte(draw.IntN(26)))
		}
		b.WriteByte(' ')
	}
	return b.String()[:length]
}

// csv returns the ClusterServiceVersion.
func (b bundle) csv() *v1alpha1.ClusterServiceVersion {
	c := &v1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Name: b.name(), Annotations: map[string]string{
		"alm-examples": text(b.pkg+"examples", 6<<10), "capabilities": "Deep Insights", "categories": "Database", "description": text(b.pkg+"short", 120),
	}}}
	c.APIVersion, c.Kind = v1alpha1.SchemeGroupVersion.String(), v1alpha1.ClusterServiceVersionKind
	s := &c.Spec
	s.DisplayName, s.Description = b.pkg, text(b.name(), 8<<10)
	s.Icon = []v1alpha1.Icon{{MediaType: "image/svg+xml", Data: text(b.pkg+"icon", 10<<10)}}
	s.Keywords, s.Maintainers = []string{"one", "two"}, []v1alpha1.Maintainer{{Name: "them", Email: "them@example.com"}}
	s.Provider, s.Maturity = v1alpha1.AppLink{Name: "example"}, "stable"
	s.Version = version.OperatorVersion{}
	s.Version.Major, s.Version.Minor = 1, uint64(b.version)
	if b.version > 0 {
		s.Replaces = bundle{b.pkg, b.version - 1, b.global}.name()
	}
	for _, mode := range []v1alpha1.InstallModeType{v1alpha1.InstallModeTypeOwnNamespace, v1alpha1.InstallModeTypeSingleNamespace, v1alpha1.InstallModeTypeMultiNamespace, v1alpha1.InstallModeTypeAllNamespaces} {
		s.InstallModes = append(s.InstallModes, v1alpha1.InstallMode{Type: mode, Supported: b.global == (mode == v1alpha1.InstallModeTypeAllNamespaces)})
	}
	for n := range crdsOfEach {
		owned := v1alpha1.CRDDescription{Name: b.crd(n), Version: "v1", Kind: fmt.Sprintf("%s%d", b.pkg, n), DisplayName: "a resource", Description: text(b.crd(n), 200)}
		for i := range 20 {
			path := fmt.Sprintf("field%d", i)
			owned.SpecDescriptors = append(owned.SpecDescriptors, v1alpha1.SpecDescriptor{Path: path, DisplayName: path, Description: text(b.pkg+path, 120), XDescriptors: []string{"urn:alm:descriptor:com.tectonic.ui:text"}})
			owned.StatusDescriptors = append(owned.StatusDescriptors, v1alpha1.StatusDescriptor{Path: path, DisplayName: path, Description: text(b.pkg+path, 80)})
		}
		s.CustomResourceDefinitions.Owned = append(s.CustomResourceDefinitions.Owned, owned)
	}
	for i := range 6 {
		s.RelatedImages = append(s.RelatedImages, v1alpha1.RelatedImage{Name: fmt.Sprint("image", i), Image: b.image() + "@sha256:" + text(b.name()+fmt.Sprint(i), 64)})
	}
	s.InstallStrategy.StrategyName = v1alpha1.InstallStrategyNameDeployment
	strategy := &s.InstallStrategy.StrategySpec
	strategy.DeploymentSpecs = []v1alpha1.StrategyDeploymentSpec{{Name: b.pkg, Spec: b.deployment()}}
	strategy.Permissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: b.pkg, Rules: b.rules(12)}}
	if b.global || strings.HasSuffix(b.pkg, "0") || strings.HasSuffix(b.pkg, "5") {
		strategy.ClusterPermissions = []v1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: b.pkg, Rules: b.rules(20)}}
	}
	return c
}

func (b bundle) rules(count int) (rules []rbacv1.PolicyRule) {
	for i := range count {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{fmt.Sprintf("group%d.%s.example.com", i, b.pkg)}, Resources: []string{"things", "things/status", "things/finalizers"},
			Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"},
		})
	}
	return rules
}

func (b bundle) deployment() (d appsv1.DeploymentSpec) {
	labels := map[string]string{"app.kubernetes.io/name": b.pkg, "control-plane": "controller-manager"}
	d.Selector, d.Template.Labels = &metav1.LabelSelector{MatchLabels: labels}, labels
	d.Template.Annotations = map[string]string{"kubectl.kubernetes.io/default-container": "manager"}
	d.Template.Spec.ServiceAccountName = b.pkg
	for _, name := range []string{"manager", "proxy"} {
		container := corev1.Container{Name: name, Image: b.image(), Args: []string{"--leader-elect", "--health-probe-bind-address=:8081"}}
		container.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi")}
		for i := range 8 {
			container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprint("RELATED_IMAGE_", i), Value: fmt.Sprint(b.image(), "-", i)})
		}
		d.Template.Spec.Containers = append(d.Template.Spec.Containers, container)
	}
	return d
}

// definition returns a CustomResourceDefinition with a schema of about 25 KB.
func (b bundle) definition(n int) *apiextensionsv1.CustomResourceDefinition {
	plural, group, _ := strings.Cut(b.crd(n), ".")
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: b.crd(n)}}
	crd.APIVersion, crd.Kind = apiextensionsv1.SchemeGroupVersion.String(), "CustomResourceDefinition"
	kind := fmt.Sprintf("%s%d", b.pkg, n)
	crd.Spec.Group, crd.Spec.Scope = group, apiextensionsv1.NamespaceScoped
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List"}
	schema := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for i := range 12 {
		part := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
		for j := range 14 {
			field := fmt.Sprintf("field%d", j)
			part.Properties[field] = apiextensionsv1.JSONSchemaProps{Type: "string", Description: text(b.crd(n)+field, 100)}
		}
		schema.Properties[fmt.Sprintf("part%d", i)] = part
	}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema}}}
	return crd
}

// unpacked is what the Job that unpacks the bundle's image writes into its ConfigMap.
func (b bundle) unpacked(cm *corev1.ConfigMap) error {
	cm.Annotations = map[string]string{"olm.sourceImage": b.image(), "olm.contentEncoding": "gzip+base64"}
	cm.BinaryData = map[string][]byte{}
	objects := []olmcore.Object{b.csv()}
	for n := range crdsOfEach {
		objects = append(objects, b.definition(n))
	}
	for i, o := range objects {
		values, err := olmcore.ToMap(o)
		if err != nil {
			return err
		}
		data, err := json.Marshal(values)
		if err != nil {
			return err
		}
		var packed bytes.Buffer
		zip := gzip.NewWriter(&packed)
		if _, err := zip.Write(data); err != nil {
			return err
		}
		if err := zip.Close(); err != nil {
			return err
		}
		cm.BinaryData[fmt.Sprintf("%d.json", i)] = []byte(base64.StdEncoding.EncodeToString(packed.Bytes()))
	}
	return nil
}

// catalogPackage is a package of a catalog with versions up to head.
func catalogPackage(name string, head int, global bool) resolution.Package {
	channel := resolution.Channel{Name: "stable"}
	p := resolution.Package{Name: name, DefaultChannel: channel.Name}
	for v := range head + 1 {
		b := bundle{name, v, global}
		entry := resolution.ChannelEntry{Name: b.name()}
		if v > 0 {
			entry.Replaces = bundle{name, v - 1, global}.name()
		}
		channel.Entries = append(channel.Entries, entry)
		property := func(kind, value string) olmcore.Property { return olmcore.Property{Type: kind, Value: []byte(value)} }
		properties := []olmcore.Property{property(resolution.PropertyPackage, fmt.Sprintf(`{"packageName":%q,"version":"1.%d.0"}`, name, v))}
		for n := range crdsOfEach {
			_, group, _ := strings.Cut(b.crd(n), ".")
			properties = append(properties, property(resolution.PropertyGVK, fmt.Sprintf(`{"group":%q,"version":"v1","kind":"%s%d"}`, group, name, n)))
		}
		p.Bundles = append(p.Bundles, resolution.Bundle{Name: b.name(), Bundle: olmcore.Bundle{Image: b.image(), Properties: properties}})
	}
	p.Channels = []resolution.Channel{channel}
	return p
}
