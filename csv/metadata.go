// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"

	"github.com/olmcore/olm/olmcore"
)

// Finalizer holds a CSV until its clean-up is done.
const Finalizer = "operators.coreos.com/csv-cleanup"

const (
	apiLabelPrefix = "olm.api."
	apiProvided    = "provided"
	apiRequired    = "required"
)

// membership is what the group's annotations of a CSV should say; without a group
// they are not to be touched.
type membership struct {
	group   *operatorsv1.OperatorGroup
	targets targets
}

func (m membership) isWritten(c *version) bool {
	return m.group == nil || isMember(c, m.group) && m.targets.isWritten(c)
}

// metadataUpdate brings finalizer, API labels and group annotations about in one
// write; nil when they are as they should be. labels says whether the spec is
// sound enough to make labels from it.
func metadataUpdate(c *version, labels bool, m membership) olmcore.Action {
	held := slices.Contains(c.Finalizers, Finalizer)
	labelled := !labels || apiLabelsAreSet(c)
	member := m.isWritten(c)
	if held && labelled && member {
		return nil
	}
	after := c.DeepCopy()
	why := olmcore.Cause{Reason: ReasonFinalizerMissing, Message: "clean-up must run before this ClusterServiceVersion goes"}
	if !member {
		setAnnotation(&after.ObjectMeta, operatorsv1.OperatorGroupAnnotationKey, m.group.Name)
		setAnnotation(&after.ObjectMeta, operatorsv1.OperatorGroupNamespaceAnnotationKey, m.group.Namespace)
		delete(after.Annotations, operatorsv1.OperatorGroupTargetsAnnotationKey)
		if len(m.targets) > 0 {
			after.Annotations[operatorsv1.OperatorGroupTargetsAnnotationKey] = strings.Join(m.targets, ",")
		}
		why = olmcore.Cause{Reason: ReasonGroupChanged, Message: "the annotations do not say what OperatorGroup " + m.group.Name + " does"}
	}
	if !labelled {
		maps.DeleteFunc(after.Labels, func(key, _ string) bool { return strings.HasPrefix(key, apiLabelPrefix) })
		after.Labels, _ = olmcore.MergeLabels(after.Labels, apiLabels(c))
		why = olmcore.Cause{Reason: ReasonAPILabelsChanged, Message: "the olm.api labels do not say what the spec provides and requires"}
	}
	if !held {
		after.Finalizers = append(after.Finalizers, Finalizer)
		why = olmcore.Cause{Reason: ReasonFinalizerMissing, Message: "clean-up must run before this ClusterServiceVersion goes"}
	}
	return olmcore.UpdateOf(c, after, why)
}

// eachAPI calls visit with the hash that OLM's labels use for each API that the
// spec names.
func eachAPI(c *version, visit func(hash uint64, value string)) {
	spec := &c.Spec
	for i := range spec.CustomResourceDefinitions.Owned {
		d := &spec.CustomResourceDefinitions.Owned[i]
		_, group, _ := strings.Cut(d.Name, ".")
		visit(apiHash(d.Kind, d.Version, group), apiProvided)
	}
	for i := range spec.APIServiceDefinitions.Owned {
		d := &spec.APIServiceDefinitions.Owned[i]
		visit(apiHash(d.Kind, d.Version, d.Group), apiProvided)
	}
	for i := range spec.CustomResourceDefinitions.Required {
		d := &spec.CustomResourceDefinitions.Required[i]
		_, group, _ := strings.Cut(d.Name, ".")
		visit(apiHash(d.Kind, d.Version, group), apiRequired)
	}
	for i := range spec.APIServiceDefinitions.Required {
		d := &spec.APIServiceDefinitions.Required[i]
		visit(apiHash(d.Kind, d.Version, d.Group), apiRequired)
	}
}

func apiHash(kind, version, group string) uint64 {
	return fnv64(fnv64(fnv64(fnv64(fnv64(fnv64Offset, kind), "."), version), "."), group)
}

func apiLabels(c *version) map[string]string {
	want := map[string]string{}
	eachAPI(c, func(hash uint64, value string) { want[apiLabelPrefix+strconv.FormatUint(hash, 16)] = value })
	return want
}

// apiLabelsAreSet answers without allocating when every API has its own label
// and nothing else has one; odd cases build the whole set.
func apiLabelsAreSet(c *version) bool {
	wanted, exact := 0, true
	var buf [len(apiLabelPrefix) + 16]byte
	eachAPI(c, func(hash uint64, value string) {
		wanted++
		key := strconv.AppendUint(append(buf[:0], apiLabelPrefix...), hash, 16)
		exact = exact && c.Labels[string(key)] == value
	})
	have := 0
	for key := range c.Labels {
		if strings.HasPrefix(key, apiLabelPrefix) {
			have++
		}
	}
	if exact && have == wanted {
		return true
	}
	want := apiLabels(c)
	for key, value := range want {
		if c.Labels[key] != value {
			return false
		}
	}
	return have == len(want)
}
