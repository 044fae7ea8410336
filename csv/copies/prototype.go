// SPDX-License-Identifier: Apache-2.0

package copies

import (
	"fmt"
	"maps"
	"strings"

	operatorsv1 "github.com/operator-framework/api/pkg/operators/v1"
	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/olmcore/olm/olmcore"
)

// prototype is what every copy of an original holds: name, labels, annotations, spec and status. Its parts are shared
// by all actions that write it.
type prototype struct {
	copy    v1alpha1.ClusterServiceVersion
	content content
	why     olmcore.Cause
	// unlike are contents that stand for those of slim copies, by their annotationKeys: see wholeOf.
	unlike map[string]*v1alpha1.ClusterServiceVersion
}

// Source: operator-lifecycle-manager pkg/controller/operators/olm/operatorgroup.go, csvCopyPrototype.
func prototypeOf(source *v1alpha1.ClusterServiceVersion) (*prototype, error) {
	p := &prototype{unlike: map[string]*v1alpha1.ClusterServiceVersion{}, why: olmcore.Cause{
		Reason: ReasonCopyDiffers, Message: "it does not hold what ClusterServiceVersion " + source.Namespace + "/" + source.Name + " does",
	}}
	c := &p.copy
	c.Name, c.Spec, c.Status = source.Name, source.Spec, source.Status
	c.Labels = maps.Clone(source.Labels)
	maps.DeleteFunc(c.Labels, func(key, _ string) bool { return strings.HasPrefix(key, olmcore.ComponentLabelPrefix) })
	c.Labels, _ = olmcore.MergeLabels(c.Labels, map[string]string{olmcore.LabelCopiedFrom: source.Namespace})
	c.Annotations = maps.Clone(source.Annotations)
	delete(c.Annotations, operatorsv1.OperatorGroupTargetsAnnotationKey)
	delete(c.Annotations, corev1.LastAppliedConfigAnnotation)
	c.Status.Reason = v1alpha1.CSVReasonCopied
	c.Status.Message = fmt.Sprintf("The operator is running in %s but is managing this namespace", source.Namespace)
	var err error
	p.content, err = contentOf(c)
	return p, err
}

// in returns the copy for a namespace, without its status, which cannot be created along.
func (p *prototype) in(namespace string) *v1alpha1.ClusterServiceVersion {
	c := p.copy
	c.Namespace, c.Status = namespace, v1alpha1.ClusterServiceVersionStatus{}
	return &c
}

// update returns what makes an observed copy hold what it should: first all but the status, then that; nil when it does.
func (p *prototype) update(have *v1alpha1.ClusterServiceVersion) (olmcore.Action, error) {
	content, err := contentOf(have)
	if err != nil {
		return nil, &olmcore.InputError{Field: "Copies", Problem: "has " + have.Namespace + "/" + have.Name + ", which cannot be encoded: " + err.Error()}
	}
	held := content.spec == p.content.spec && len(have.OwnerReferences) == 0
	if held && content.status == p.content.status {
		return nil, nil
	}
	before, after := have, &v1alpha1.ClusterServiceVersion{TypeMeta: have.TypeMeta, ObjectMeta: have.ObjectMeta, Spec: p.copy.Spec}
	if isSlim(have) {
		before = p.wholeOf(have, held)
	}
	after.Labels, after.Annotations = p.copy.Labels, p.copy.Annotations
	if held {
		after.Status = p.copy.Status
		return olmcore.UpdateStatusOf(before, after, p.why), nil
	}
	after.OwnerReferences, after.Status = nil, before.Status
	return olmcore.UpdateOf(before, after, p.why), nil
}
