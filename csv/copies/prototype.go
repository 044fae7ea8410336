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
	// unlike are contents that stand for those of slim copies, by their annotationKeys: see writeWhole.
	unlike map[string]*v1alpha1.ClusterServiceVersion
}

// Source: operator-lifecycle-manager pkg/controller/operators/olm/operatorgroup.go, csvCopyPrototype.
func prototypeOf(source *v1alpha1.ClusterServiceVersion) (*prototype, error) {
	p := &prototype{unlike: map[string]*v1alpha1.ClusterServiceVersion{}, why: olmcore.Cause{
		Reason: ReasonCopyDiffers, Message: "it does not hold what ClusterServiceVersion " + source.Namespace + "/" + source.Name + " does",
	}}
	c := &p.copy
	c.Name = source.Name
	c.Spec = source.Spec
	c.Status = source.Status
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

// differing is an observed copy that does not hold what it should.
type differing struct {
	*found
	// held: all but its status is as it should be.
	held bool
}

// compare reports whether an observed copy differs from what it should hold.
func (p *prototype) compare(have *found) (d differing, differs bool, err error) {
	content := have.content
	if !have.slim {
		if content, err = contentOf(have.ClusterServiceVersion); err != nil {
			return d, false, &olmcore.InputError{
				Field: "Copies", Problem: "has " + have.Namespace + "/" + have.Name + ", which cannot be encoded: " + err.Error(),
			}
		}
	}
	d = differing{have, content.spec == p.content.spec && len(have.OwnerReferences) == 0}
	return d, !d.held || content.status != p.content.status, nil
}

// updates return what makes copies hold what they should: first all but the status, then that. The objects of all are
// allocated together, as there may be thousands.
func (p *prototype) updates(all []differing) []olmcore.Action {
	objects := make([]struct {
		before, after v1alpha1.ClusterServiceVersion
	}, len(all))
	actions := make([]olmcore.Action, len(all))
	for i, have := range all {
		before, after := have.ClusterServiceVersion, &objects[i].after
		if have.slim {
			before = &objects[i].before
			p.writeWhole(before, have)
		}
		after.TypeMeta = have.TypeMeta
		after.ObjectMeta = have.ObjectMeta
		after.Spec = p.copy.Spec
		after.Labels, after.Annotations = p.copy.Labels, p.copy.Annotations
		if have.held {
			after.Status = p.copy.Status
			actions[i] = olmcore.UpdateStatusOf(before, after, p.why)
			continue
		}
		after.OwnerReferences, after.Status = nil, before.Status
		actions[i] = olmcore.UpdateOf(before, after, p.why)
	}
	return actions
}
