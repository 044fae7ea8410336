// SPDX-License-Identifier: Apache-2.0

package step

import (
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/installplan/internal/crd"
	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/installplan/internal/manifest"
)

// definitionRule carries out what package crd decides about a CustomResourceDefinition.
func definitionRule(w *world, t *Target) Verdict {
	d, err := definitionOf(w, t)
	if err != nil {
		return unreadable(t, err)
	}
	decision := d.Decide()
	var v Verdict
	switch decision.Verb {
	case crd.Create:
		v = create(w, t, decision.After)
	case crd.Update:
		v = change(w, t, decision.After)
		if t.Recorded == v1alpha1.StepStatusWaitingForAPI {
			v.Status = v1alpha1.StepStatusWaitingForAPI // its memory that the plan wrote it
		}
	case crd.Refuse:
		v = blocked("%s", decision.Message)
	case crd.Never:
		v = invalid("%s", decision.Message)
	default:
		v = awaitServed(w, d.Observed)
	}
	v.Change = decision.Change
	return v.saying(decision.Said...)
}

func definitionOf(w *world, t *Target) (crd.Definition, error) {
	object := labelled(w, t)
	annotations := map[string]string{}
	for key, value := range manifest.Strings(metadataOf(object), "annotations") {
		annotations[key] = value.(string)
	}
	records, others := crd.Recorded(annotations)
	delete(others, crd.ChangeableBy) // the administrator's alone
	plain := map[string]any{}
	for key, value := range others {
		plain[key] = value
	}
	metadataOf(object)["annotations"] = plain
	hash, err := hashOf(object)
	if err != nil {
		return crd.Definition{}, err
	}
	o, err := typed(t, object)
	if err != nil {
		return crd.Definition{}, err
	}
	observed, _ := t.Observed.(*apiextensionsv1.CustomResourceDefinition)
	return crd.Definition{
		Desired: o.(*apiextensionsv1.CustomResourceDefinition), Hash: hash, Records: records, Observed: observed,
		Versions: t.Versions, Known: w.known,
		Written: w.wrote(t.Key), Met: t.Recorded == v1alpha1.StepStatusUnknown,
		Resources: w.CustomResources, Hidden: w.Plan.Status.AttenuatedServiceAccountRef != nil,
		OverwriteUnmanaged: w.OverwriteUnmanaged, ChangeOwned: w.ChangeOwnedCRDs,
	}, nil
}

// awaitServed decides about a CustomResourceDefinition whose content is right.
func awaitServed(w *world, have *apiextensionsv1.CustomResourceDefinition) Verdict {
	if kinds.Established(have) {
		return Verdict{Outcome: Done}
	}
	var started time.Time
	if start := w.Plan.Status.StartTime; start != nil {
		started = start.Time
	}
	v := Verdict{Outcome: Waiting, Status: v1alpha1.StepStatusWaitingForAPI}
	v.Message, v.Deadline = crd.Awaited(have, started)
	if !w.Preflight && !w.Now.Before(v.Deadline) {
		v.Outcome = Blocked
	}
	return v
}
