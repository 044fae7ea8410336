// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/olmcore/olm/installplan/internal/bundle"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/internal/apigroup"
	"github.com/olmcore/olm/internal/builtin"
	"github.com/olmcore/olm/olmcore"
)

const (
	// AlongsidePrefix is the prefix of the annotations in which a definition records the ClusterServiceVersions that
	// installed it. Each value is namespace/name. OLM writes these annotations.
	AlongsidePrefix = "operatorframework.io/installed-alongside-"
	// changeableBy is the annotation of a definition that names the namespaces whose plans may change it regardless of its
	// other owners, separated by commas. Only an administrator sets it. It is removed from the manifests of bundles.
	changeableBy = olmcore.KeyPrefix + "changeable-by"
	// establishTimeout is how long a definition may take to be established.
	establishTimeout = time.Minute
	// maxRecorded is how many versions of one namespace a definition records. The size of its annotations is limited, and
	// other namespaces need space too.
	maxRecorded = 20
)

// definition is a CustomResourceDefinition that steps describe. All namespaces share definitions. So they are never
// deleted, a step is not Done before its definition is established, and no change may take something away from other
// owners or from existing custom resources.
type definition struct {
	w *world
	t *Target
	// desired is the definition in the manifest, with the labels of OLM and without the metadata that withoutRecords
	// removes. hash is its hash.
	desired *apiextensionsv1.CustomResourceDefinition
	hash    string
	// have is the existing definition, or nil.
	have *apiextensionsv1.CustomResourceDefinition
}

// definitionRule is the rule of CustomResourceDefinitions.
func definitionRule(w *world, t *Target) Decision {
	object := labelled(w, t)
	withoutRecords(bundle.Fields(object, "metadata"))
	hash, err := hashOf(object)
	if err != nil {
		return unreadable(kinds.CRD, t.Key.Name, err)
	}
	o, err := typed(t, object)
	if err != nil {
		return unreadable(kinds.CRD, t.Key.Name, err)
	}
	d := definition{w: w, t: t, desired: o.(*apiextensionsv1.CustomResourceDefinition), hash: hash}
	d.have, _ = t.Observed.(*apiextensionsv1.CustomResourceDefinition)
	if problem := d.confineConversion(); problem != "" {
		return invalid("CustomResourceDefinition %s: %s", t.Key.Name, problem)
	}
	return d.decide()
}

// withoutRecords removes from the metadata of a manifest the labels and annotations that name the owners of a
// definition or allow changes of it. Only steps, package csv and administrators write these. The controller writes
// definitions even if the plan runs as a ServiceAccount. So a bundle could otherwise record the versions of others, or
// overwrite their records.
//
// Differs: OLM accepts the versions that a manifest records.
func withoutRecords(metadata map[string]any) {
	annotations, labels := bundle.Strings(metadata, "annotations"), bundle.Strings(metadata, "labels")
	maps.DeleteFunc(annotations, func(key string, _ any) bool {
		return strings.HasPrefix(key, AlongsidePrefix) || strings.HasPrefix(key, olmcore.KeyPrefix)
	})
	for _, key := range owning {
		if key != olmcore.LabelManaged {
			delete(labels, key)
		}
	}
	metadata["annotations"], metadata["labels"] = annotations, labels
}

// confineConversion changes the desired definition of a plan that runs as a ServiceAccount: its conversion Service must
// be in the namespace of the plan. It returns why that is impossible, or an empty string. The API server reaches
// addresses and namespaces that the ServiceAccount does not. Bundles may name a Service of any namespace, and package
// csv writes the right one later. A conversion that exists is not changed.
func (d definition) confineConversion() (problem string) {
	conversion := d.desired.Spec.Conversion
	isConfigured := Converts(conversion) && conversion.Webhook != nil && conversion.Webhook.ClientConfig != nil
	isKept := d.have != nil && apiequality.Semantic.DeepEqual(conversionOf(d.have), conversionOf(d.desired))
	if !d.w.isConfined() || !isConfigured || isKept {
		return ""
	}
	if conversion.Webhook.ClientConfig.URL != nil {
		return "a plan that runs as a ServiceAccount may not set spec.conversion.webhook.clientConfig.url"
	}
	if service := conversion.Webhook.ClientConfig.Service; service != nil {
		service.Namespace = d.w.in.Plan.Namespace
	}
	return ""
}

// Converts reports whether a webhook converts custom resources. It returns false for nil.
func Converts(c *apiextensionsv1.CustomResourceConversion) bool {
	return c != nil && c.Strategy == apiextensionsv1.WebhookConverter
}

// conversionOf returns the conversion webhook of a definition, or nil. Its CA bundle is omitted, because others write
// it.
func conversionOf(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceConversion {
	c := crd.Spec.Conversion.DeepCopy()
	if !Converts(c) {
		return nil
	}
	if c.Webhook != nil && c.Webhook.ClientConfig != nil {
		c.Webhook.ClientConfig.CABundle = nil
		s := c.Webhook.ClientConfig.Service
		if s != nil && s.Port == nil {
			s.Port = new(int32(443))
		}
	}
	return c
}

// decide returns the Decision about a definition whose manifest is valid.
func (d definition) decide() Decision {
	v := d.checkVersions()
	switch {
	case v.Refused():
		return v
	case d.have == nil:
		return d.create()
	}
	return d.update()
}

// checkVersions refuses a definition without versions, and one that cannot record the versions of the plan.
func (d definition) checkVersions() Decision {
	if len(d.desired.Spec.Versions) == 0 {
		return blocked("could not find any versions in the new CRD")
	}
	name, versions := d.t.Key.Name, d.t.Versions
	for _, version := range versions {
		if !MayBeRecorded(version) {
			return invalid("CustomResourceDefinition %s: %q is not a valid name of a ClusterServiceVersion", name, version)
		}
	}
	if len(versions) > maxRecorded {
		return invalid("CustomResourceDefinition %s is in steps of %d versions, but can record only %d", name, len(versions), maxRecorded)
	}
	return Decision{}
}

// MayBeRecorded reports whether a definition may record a ClusterServiceVersion or namespace of this name. Callers
// look up objects by recorded names, so a name must be a valid object name.
func MayBeRecorded(name string) bool { return len(validation.IsDNS1123Subdomain(name)) == 0 }

// create returns the Decision about a definition that does not exist.
func (d definition) create() Decision {
	if v := d.mayCreate(); v.Outcome != Pending {
		return v
	}
	entries, _ := d.recording(nil)
	return create(d.w, d.t, annotated(d.desired, entries, map[string]string{hashKey: d.hash}))
}

// mayCreate decides whether a plan may create the definition that a step describes. The Outcome is Pending if it may.
func (d definition) mayCreate() Decision {
	name, group := d.t.Key.Name, d.desired.Spec.Group
	if builtin.IsServed(group) || builtin.IsAggregated(group) {
		return invalid("CustomResourceDefinition %s: a bundle may not define resources in API group %s of Kubernetes or OLM", name, group)
	}
	return d.mayAddToGroup(fmt.Sprintf("CustomResourceDefinition %s is not created", name))
}

// mayAddToGroup decides whether a plan may add a version to the API group of a definition. An APIService of another
// operator serves the group elsewhere, and clients, the garbage collector and the namespace controller could prefer the
// new version. A cluster administrator can share the group with the namespace of the plan. The Outcome is Pending if
// there is no obstacle. refusal begins the message.
//
// Differs: OLM adds to any group.
func (d definition) mayAddToGroup(refusal string) Decision {
	group, namespace := d.desired.Spec.Group, d.w.in.Plan.Namespace
	if !d.w.in.APIServices.Complete {
		return waiting("waiting for the APIServices of API group %s, which were not read", group)
	}
	var obstacles []apigroup.Obstacle
	for _, service := range d.w.in.APIServices.Items {
		owner, isOwned := olmcore.OwnerOf(service.Labels)
		isOurs := isOwned && owner.Kind == kinds.CSV && owner.Namespace == namespace
		isAllowed := isOurs || apigroup.IsSharedWith(service, namespace)
		if isAllowed || !apigroup.Contains(group, service) || apigroup.FollowsDefinitions(service) {
			continue
		}
		reason := fmt.Sprintf("APIService %s of the same group belongs to no operator of namespace %s", service.Name, namespace)
		obstacles = append(obstacles, apigroup.Obstacle{Object: service, Resource: "apiservice", Reason: reason})
	}
	if len(obstacles) == 0 {
		return Decision{}
	}
	slices.SortFunc(obstacles, func(a, b apigroup.Obstacle) int { return strings.Compare(a.Object.GetName(), b.Object.GetName()) })
	return blocked("%s: %s. %s", refusal, obstacles[0].Reason, apigroup.Advice(namespace, obstacles))
}

// recording returns the records that a definition should have: those of the plan, and those of versions that exist or
// will be created soon. live contains the records of these versions. OLM records a name under its hash, and another
// name with the same hash is easily found. In that case the first record stays, and the second one gets another key.
func (d definition) recording(entries map[string]string) (kept map[string]string, live []string) {
	kept = map[string]string{}
	add := func(value string) {
		h := fnv.New64a()
		h.Write([]byte(value))
		key := fmt.Sprintf("%s%x", AlongsidePrefix, h.Sum64())
		have, taken := kept[key]
		if taken && have != value {
			key += "-" + olmcore.NameSuffix(20, value)
		}
		kept[key] = value
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		namespace, name, _ := strings.Cut(entries[key], "/")
		csv := d.w.version(namespace, name)
		if csv != nil && !csv.IsCopied() || d.w.isAnnounced(namespace, name) {
			add(entries[key])
			live = append(live, entries[key])
		}
	}
	for _, name := range d.t.Versions {
		add(d.w.in.Plan.Namespace + "/" + name)
	}
	return kept, live
}

// isAnnounced reports whether an unfinished plan of another namespace will create a ClusterServiceVersion.
func (w *world) isAnnounced(namespace, name string) bool {
	return slices.Contains(w.in.Announced, types.NamespacedName{Namespace: namespace, Name: name})
}

// annotated returns a copy of a definition with further annotations.
func annotated(crd *apiextensionsv1.CustomResourceDefinition, further ...map[string]string) *apiextensionsv1.CustomResourceDefinition {
	crd = crd.DeepCopy()
	for _, f := range further {
		crd.Annotations, _ = olmcore.MergeMaps(crd.Annotations, f)
	}
	return crd
}
