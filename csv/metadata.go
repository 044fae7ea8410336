// SPDX-License-Identifier: Apache-2.0

package csv

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/csv/cleanup"
	"github.com/olmcore/olm/olmcore"
)

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

// metadataUpdate brings finalizer and group annotations about in one write; nil
// when they are as they should be. The API labels go along, and are no reason for
// a write of their own: OLM has given them up. labels says whether the spec is
// sound enough to make labels from it.
func metadataUpdate(c *version, labels bool, m membership) olmcore.Action {
	held, member := slices.Contains(c.Finalizers, cleanup.Finalizer), m.isWritten(c)
	if held && member {
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
	}
	if held {
		why = olmcore.Cause{Reason: ReasonGroupChanged, Message: "the annotations do not say what OperatorGroup " + m.group.Name + " does"}
	} else {
		after.Finalizers = append(after.Finalizers, cleanup.Finalizer)
	}
	if labels {
		maps.DeleteFunc(after.Labels, func(key, _ string) bool { return strings.HasPrefix(key, apiLabelPrefix) })
		after.Labels, _ = olmcore.MergeLabels(after.Labels, apiLabels(c))
	}
	return olmcore.UpdateOf(c, after, why)
}

func apiHash(kind, version, group string) uint64 {
	return fnv64(fnv64(fnv64(fnv64(fnv64(fnv64Offset, kind), "."), version), "."), group)
}

// apiLabels are OLM's labels for the APIs that the spec names; what it provides
// and requires is required.
func apiLabels(c *version) map[string]string {
	labels := map[string]string{}
	add := func(kind, version, group, value string) {
		labels[apiLabelPrefix+strconv.FormatUint(apiHash(kind, version, group), 16)] = value
	}
	crds := func(list []v1alpha1.CRDDescription, value string) {
		for _, d := range list {
			_, group, _ := strings.Cut(d.Name, ".")
			add(d.Kind, d.Version, group, value)
		}
	}
	services := func(list []v1alpha1.APIServiceDescription, value string) {
		for _, d := range list {
			add(d.Kind, d.Version, d.Group, value)
		}
	}
	crds(c.Spec.CustomResourceDefinitions.Owned, apiProvided)
	services(c.Spec.APIServiceDefinitions.Owned, apiProvided)
	crds(c.Spec.CustomResourceDefinitions.Required, apiRequired)
	services(c.Spec.APIServiceDefinitions.Required, apiRequired)
	return labels
}
