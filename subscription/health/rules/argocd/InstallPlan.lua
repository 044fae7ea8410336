-- Health of InstallPlan objects for Argo CD, written from the table of
-- github.com/olmcore/olm/subscription/health/internal/rules: change it there.
-- Key in argocd-cm: resource.customizations.health.operators.coreos.com_InstallPlan
local hs = {}

local function at(value, ...)
  for _, key in ipairs({...}) do
    if type(value) ~= "table" then
      return nil
    end
    value = value[key]
  end
  return value
end

local function text(value)
  if type(value) == "string" then
    return value
  end
  return ""
end

local function oneOf(value, list)
  for _, entry in ipairs(list) do
    if value == entry then
      return true
    end
  end
  return false
end

local function condition(kind, status, reasons)
  local conditions = at(obj, "status", "conditions")
  if type(conditions) ~= "table" then
    return nil
  end
  for _, c in ipairs(conditions) do
    if type(c) == "table" and c.type == kind and c.status == status and (reasons == nil or oneOf(c.reason, reasons)) then
      return c
    end
  end
  return nil
end

local function said(value, otherwise)
  if text(value) ~= "" then
    return value
  end
  return otherwise
end

-- Deleting
if text(at(obj, "metadata", "deletionTimestamp")) ~= "" then
  hs.status = "Progressing"
  hs.message = "the InstallPlan is being deleted"
  return hs
end

-- Complete
if at(obj, "status", "phase") == "Complete" then
  hs.status = "Healthy"
  hs.message = "all steps are done"
  return hs
end

-- Superseded
if at(obj, "status", "phase") == "Failed" and condition("Installed", "False", {"Superseded"}) ~= nil then
  hs.status = "Healthy"
  hs.message = said(at(condition("Installed", "False", {"Superseded"}), "message"), "another InstallPlan superseded it")
  return hs
end

-- Failed
if at(obj, "status", "phase") == "Failed" and condition("Installed", "False") ~= nil then
  hs.status = "Degraded"
  hs.message = said(at(condition("Installed", "False"), "message"), "a step failed")
  return hs
end

-- Failed
if at(obj, "status", "phase") == "Failed" then
  hs.status = "Degraded"
  hs.message = said(at(obj, "status", "message"), "a step failed")
  return hs
end

-- Approved
if at(obj, "status", "phase") == "RequiresApproval" and at(obj, "spec", "approved") == true then
  hs.status = "Progressing"
  hs.message = "it is approved and about to run"
  return hs
end

-- RequiresApproval
if at(obj, "status", "phase") == "RequiresApproval" then
  hs.status = "Suspended"
  hs.message = "it waits for approval: set spec.approved to true"
  return hs
end

-- Installing
if at(obj, "status", "phase") == "Installing" and condition("Installed", "False") ~= nil then
  hs.status = "Progressing"
  hs.message = said(at(condition("Installed", "False"), "message"), "its steps are being applied")
  return hs
end

-- Installing
if at(obj, "status", "phase") == "Installing" then
  hs.status = "Progressing"
  hs.message = said(at(obj, "status", "message"), "its steps are being applied")
  return hs
end

-- Planning
if at(obj, "status", "phase") == "Planning" then
  hs.status = "Progressing"
  hs.message = "its steps are being planned"
  return hs
end

-- UnknownPhase
if text(at(obj, "status", "phase")) ~= "" then
  hs.status = "Unknown"
  hs.message = "its phase " .. text(at(obj, "status", "phase")) .. " is unknown"
  return hs
end

-- NotYetReconciled
hs.status = "Progressing"
hs.message = "it has no phase yet"
return hs
