// SPDX-License-Identifier: Apache-2.0

// Package report is what the units of an InstallPlan's evaluation have to say: findings,
// with the reasons that package installplan documents.
package report

import (
	"fmt"

	"github.com/olmcore/olm/olmcore"
)

// Reasons, each explained by the constant of its name in package installplan.
const (
	AppliedContentAltered   = "AppliedContentAltered"
	CSVContentDiffers       = "CSVContentDiffers"
	ExistingResourceInvalid = "ExistingResourceInvalid"
	ExtraDocumentsIgnored   = "ExtraDocumentsIgnored"
	KeyCase                 = "KeyCase"
	NewerCRDKept            = "NewerCRDKept"
	OptionalStepSkipped     = "OptionalStepSkipped"
	SharedObject            = "SharedObject"
	StepAbsent              = "StepAbsent"
	StepDiffers             = "StepDiffers"
	StepImmutable           = "StepImmutable"
	StepNameDiffers         = "StepNameDiffers"
	Truncated               = "Truncated"
	UnmanagedObjectUpdated  = "UnmanagedObjectUpdated"
)

// Finding is something to be said about a plan or, where OfStep is set, about the step
// that is looked at.
type Finding struct {
	Severity        olmcore.Severity
	Reason, Message string
	OfStep          bool
}

// Step returns a Finding about the step that is looked at.
func Step(severity olmcore.Severity, reason, format string, args ...any) Finding {
	return Finding{Severity: severity, Reason: reason, Message: fmt.Sprintf(format, args...), OfStep: true}
}

// Plan returns a Finding about the plan.
func Plan(severity olmcore.Severity, reason, format string, args ...any) Finding {
	return Finding{Severity: severity, Reason: reason, Message: fmt.Sprintf(format, args...)}
}
