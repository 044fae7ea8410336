// SPDX-License-Identifier: Apache-2.0

// Package report is what the packages of InstallPlans have to say: findings, the reasons
// that several of them give, and how long a text may be.
package report

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/olmcore/olm/olmcore"
)

// Reasons, each explained by the constants of its name in installplan, create and unpack.
const (
	AppliedContentAltered   = "AppliedContentAltered"
	BundleInvalid           = "BundleInvalid"
	BundleNotUnpacked       = "BundleNotUnpacked"
	CSVContentDiffers       = "CSVContentDiffers"
	ExistingResourceInvalid = "ExistingResourceInvalid"
	ExtraDocumentsIgnored   = "ExtraDocumentsIgnored"
	KeyCase                 = "KeyCase"
	ManifestSkipped         = "ManifestSkipped"
	ManualOwner             = "ManualOwner"
	NewerCRDKept            = "NewerCRDKept"
	OptionalStepSkipped     = "OptionalStepSkipped"
	RelationRepaired        = "RelationRepaired"
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

// Clip returns a text for a status, as valid UTF-8 of at most 8 KiB and a mark where it
// was cut: names and the texts of an API server may have any length.
func Clip(text string) string {
	const limit = 8 << 10
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	cut := limit
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + " ..."
}
