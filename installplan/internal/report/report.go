// SPDX-License-Identifier: Apache-2.0

// Package report has the reasons that several packages of InstallPlans give, and says how long a text may be.
package report

import (
	"strings"
	"unicode/utf8"

	"github.com/olmcore/olm/internal/printable"
)

// Reasons, each explained by the constants of its name in installplan, create and unpack.
const (
	AppliedContentAltered   = "AppliedContentAltered"
	BundleInvalid           = "BundleInvalid"
	BundleNotUnpacked       = "BundleNotUnpacked"
	ConvertedElsewhere      = "ConvertedElsewhere"
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
	EarlierPlanUnfinished   = "EarlierPlanUnfinished"
	SubscriptionExists      = "SubscriptionExists"
	StepAbsent              = "StepAbsent"
	StepDiffers             = "StepDiffers"
	StepImmutable           = "StepImmutable"
	Superseded              = "Superseded"
	StepNameDiffers         = "StepNameDiffers"
	Truncated               = "Truncated"
	UnmanagedObjectUpdated  = "UnmanagedObjectUpdated"
)

// Clip returns a text for a status, as valid UTF-8 of at most 8 KiB and a mark where it was cut: names and the texts of
// an API server may have any length. Characters that people do not see are escaped.
func Clip(text string) string {
	const limit = 8 << 10
	text = printable.Text(strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) <= limit {
		return text
	}
	cut := limit
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + " ..."
}
