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

// prototype contains the parts that all copies of an original have in common: name, labels, annotations, spec and
// status. All actions that write copies share its memory.
type prototype struct {
	copy    v1alpha1.ClusterServiceVersion
	content content
	why     olmcore.Cause
	// unlike contains contents that replace the unknown contents of slim copies, by their annotationKeys. See writeWhole.
	unlike map[string]*v1alpha1.ClusterServiceVersion
}

// prototypeOf returns the prototype of the copies of an original.
//
// Source: operator-lifecycle-manager pkg/controller/operators/olm/operatorgroup.go, csvCopyPrototype.
func prototypeOf(source *v1alpha1.ClusterServiceVersion) (*prototype, error) {
	p := &prototype{unlike: map[string]*v1alpha1.ClusterServiceVersion{}, why: olmcore.Cause{
		Reason: ReasonCopyDiffers, Message: "it differs from ClusterServiceVersion " + source.Namespace + "/" + source.Name,
	}}
	c := &p.copy
	c.Name = source.Name
	c.Spec = source.Spec
	c.Status = source.Status
	c.Labels = maps.Clone(source.Labels)
	maps.DeleteFunc(c.Labels, func(key, _ string) bool { return strings.HasPrefix(key, olmcore.ComponentLabelPrefix) })
	c.Labels, _ = olmcore.MergeMaps(c.Labels, map[string]string{olmcore.LabelCopiedFrom: source.Namespace})
	c.Annotations = maps.Clone(source.Annotations)
	delete(c.Annotations, operatorsv1.OperatorGroupTargetsAnnotationKey)
	delete(c.Annotations, corev1.LastAppliedConfigAnnotation)
	c.Status.Reason = v1alpha1.CSVReasonCopied
	c.Status.Message = fmt.Sprintf("The operator is running in %s but is managing this namespace", source.Namespace)
	var err error
	p.content, err = contentOf(c)
	return p, err
}

// in returns the copy for a namespace. It has no status, because a create request cannot set it.
func (p *prototype) in(namespace string) *v1alpha1.ClusterServiceVersion {
	c := p.copy
	c.Namespace, c.Status = namespace, v1alpha1.ClusterServiceVersionStatus{}
	return &c
}

// comparison is the result of comparing the namespaces that should have a copy with the observed copies.
type comparison struct {
	missing  []string // the namespaces without a ClusterServiceVersion of the name
	taken    []string // the namespaces in which it is not a copy of the original
	outdated []outdated
}

// compareCopies compares the observed copies in some namespaces with the desired copy. Copies that are being deleted
// are omitted.
func compareCopies(f *facts, desired *prototype, namespaces []string) (comparison, error) {
	var found comparison
	for _, namespace := range namespaces {
		have := f.otherIn(namespace)
		switch {
		case have == nil:
			found.missing = append(found.missing, namespace)
			continue
		case !have.isCopy:
			found.taken = append(found.taken, namespace)
			continue
		case have.csv.DeletionTimestamp != nil, have.deleteFor.Reason != "":
			continue
		}
		o, isOutdated, err := desired.compare(have)
		if err != nil {
			return comparison{}, err
		}
		if isOutdated {
			found.outdated = append(found.outdated, o)
		}
	}
	return found, nil
}

// outdated is an observed copy whose content differs from the desired copy.
type outdated struct {
	copy *other
	// onlyStatus is true if only its status differs.
	onlyStatus bool
}

// compare reports whether an observed copy differs from the desired copy.
func (p *prototype) compare(have *other) (o outdated, isOutdated bool, err error) {
	content := have.content
	if !have.isSlim {
		if content, err = contentOf(have.csv); err != nil {
			return o, false, &olmcore.InputError{
				Field: "Copies", Problem: "has " + have.csv.Namespace + "/" + have.csv.Name + ", which cannot be encoded: " + err.Error(),
			}
		}
	}
	o = outdated{copy: have, onlyStatus: content.spec == p.content.spec && len(have.csv.OwnerReferences) == 0}
	return o, !o.onlyStatus || content.status != p.content.status, nil
}

// updates returns the updates of copies to the desired content. The status is written by a later call if anything else
// differs. All objects are allocated together, because there may be thousands.
func (p *prototype) updates(all []outdated) []olmcore.Action {
	objects := make([]struct {
		before, after v1alpha1.ClusterServiceVersion
	}, len(all))
	actions := make([]olmcore.Action, len(all))
	for i, o := range all {
		before, after := o.copy.csv, &objects[i].after
		if o.copy.isSlim {
			before = &objects[i].before
			p.writeWhole(before, o)
		}
		after.TypeMeta = o.copy.csv.TypeMeta
		after.ObjectMeta = o.copy.csv.ObjectMeta
		after.Spec = p.copy.Spec
		after.Labels, after.Annotations = p.copy.Labels, p.copy.Annotations
		if o.onlyStatus {
			after.Status = p.copy.Status
			actions[i] = olmcore.UpdateStatusOf(before, after, p.why)
			continue
		}
		after.OwnerReferences, after.Status = nil, before.Status
		actions[i] = olmcore.UpdateOf(before, after, p.why)
	}
	return actions
}
